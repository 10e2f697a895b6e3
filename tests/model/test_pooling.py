import torch

from model.pooling import AttentionPooling, ClsPooling, MaxPooling, MeanPooling

X = torch.tensor([[[1.0, 6.0], [3.0, 2.0], [100.0, 100.0]]])
MASK = torch.tensor([[True, True, False]])


def test_mean_is_over_the_real_tokens():
    assert MeanPooling(d_model=2)(X, MASK).tolist() == [[2.0, 4.0]]


def test_max_is_over_the_real_tokens():
    assert MaxPooling(d_model=2)(X, MASK).tolist() == [[3.0, 6.0]]
    assert MaxPooling(d_model=2)(-X, MASK).tolist() == [[-1.0, -2.0]]


def test_cls_is_the_first_token():
    assert ClsPooling(d_model=2)(X, MASK).tolist() == [[1.0, 6.0]]


def test_attention_weighs_the_real_tokens_by_a_learned_query():
    pooling = AttentionPooling(d_model=2)
    with torch.no_grad():
        pooling.query.weight.copy_(torch.tensor([[1.0, 0.0]]))
    weights = torch.tensor([1.0, 3.0]).softmax(-1)
    torch.testing.assert_close(pooling(X, MASK), weights[None] @ X[0, :2])
