"""What a worker process of LitServe does: load the checkpoint, take the requests that wait, answer them in one batch."""

from __future__ import annotations

import signal
import time
from queue import Empty
from typing import TYPE_CHECKING, Any

import litserve
from litserve.loops import BatchedLoop
from starlette.responses import JSONResponse, Response

from serving.checks import texts_of

if TYPE_CHECKING:
    from model import Prediction, TextClassifier


class TakeWhatWaits(BatchedLoop):
    """Batches without a timer: sleep until a request comes, then take all that wait, at most `max_batch_size`.

    While a batch is computed the next one gathers, so batches grow with the load and a lone request never waits. The answers
    to a batch go out together.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple] = []

    def get_batch_requests(self, lit_api: Any, request_queue: Any, transport: Any) -> tuple[list, list]:
        if self.answers:  # to the batch before
            transport.send(self.answers, 0)
            self.answers = []
        taken: list[tuple] = []
        try:
            taken.append(request_queue.get(timeout=1.0))
            while len(taken) < lit_api.max_batch_size:
                taken.append(request_queue.get(timeout=0))
        except Empty:
            pass
        oldest = time.monotonic() - lit_api.request_timeout
        late = [(queue, uid) for queue, uid, put_at, _ in taken if put_at < oldest]
        return [(queue, uid, content) for queue, uid, put_at, content in taken if put_at >= oldest], late

    def put_response(
        self, transport: Any, response_queue_id: int, uid: str, response_data: Any, status: Any, response_type: Any
    ) -> None:
        self.answers.append((uid, (response_data, status, response_type, self._worker_id)))


class Predictor(litserve.LitAPI):
    """`POST /predict`: requests with one or more texts each → a list of predictions each."""

    def __init__(self, checkpoint: str, *, precision: str, threads: int, max_batch: int) -> None:
        super().__init__(max_batch_size=max_batch, loop=TakeWhatWaits())
        self.checkpoint, self.precision, self.threads = checkpoint, precision, threads
        self.classifier: TextClassifier

    async def authorize(self) -> None:
        """Everybody may ask. LitServe's own way to say so sends each request through another thread."""

    def setup(self, device: str) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the first one ends the others
        litserve.configure_logging("ERROR")
        import torch

        from model import load_classifier

        torch.set_num_threads(self.threads)
        if device.startswith("cuda"):
            torch.cuda.set_device(device)
        self.classifier = load_classifier(self.checkpoint, precision=self.precision, device=device.split(":")[0])
        text = "a text" if self.classifier.n_parts == 1 else ["a text"] * self.classifier.n_parts
        self.classifier.predict([text])  # so that the first request does not wait for what is made once

    def predict(self, x: list[dict], **kwargs: Any) -> list[Response]:
        texts = [texts_of(content) for content in x]
        answers = iter(self.classifier.predict([text for of_one in texts for text in of_one]))
        return [
            JSONResponse({"predictions": [self.answer(next(answers)) for _ in of_one]}) for of_one in texts
        ]  # made here, where the other processes do not wait for it

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """One prediction as `predict.py --json` gives it, without the text."""
        answer = {"label": prediction.label, "probabilities": prediction.probabilities}
        known = self.classifier.task.in_set_from is not None
        return {**answer, "set": self.classifier.label_set(prediction)} if known else answer
