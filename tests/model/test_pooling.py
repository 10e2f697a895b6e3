import torch

from model.pooling import ClsPooling, MeanPooling

X = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]])
MASK = torch.tensor([[True, True, False]])


def test_mean_is_over_the_real_tokens():
    assert MeanPooling()(X, MASK).tolist() == [[2.0, 4.0]]


def test_cls_is_the_first_token():
    assert ClsPooling()(X, MASK).tolist() == [[1.0, 2.0]]
