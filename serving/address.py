"""Where a server listens: how that is asked for, whether the address can be had, and what it is called."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from pathlib import Path

from errors import UserError

HOSTS = ("127.0.0.1", "0.0.0.0", "::")


def add_address(parser: ArgumentParser, *, port: int) -> None:
    """What both command lines take: the checkpoint, and where to listen."""
    what = "a .ckpt file (default: the newest under outputs/)"
    parser.add_argument("checkpoint", nargs="?", type=Path, help=what)
    what = "0.0.0.0 and :: answer other machines too (default: %(default)s)"
    parser.add_argument("--host", choices=HOSTS, default=HOSTS[0], help=what)
    parser.add_argument("--port", type=int, default=port, help="default: %(default)s")


def require_free_port(host: str, port: int) -> None:
    """Raise `UserError` where no server can be opened at this address."""
    if not 1024 <= port <= 65535:
        raise UserError(f"--port {port}: give a number from 1024 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise UserError(f"--port {port}: cannot be opened on {host} ({error.strerror}); give another") from error


def url_of(host: str, port: int) -> str:
    """The address by which this machine reaches a server that listens on `host`."""
    return f"http://{'[::1]' if host == '::' else '127.0.0.1'}:{port}"
