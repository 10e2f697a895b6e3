import torch

from model.embedding import SegmentedEmbedding

SEP = 3
IDS = torch.tensor([[2, 5, SEP, 6, 7, SEP, 0], [2, SEP, 9, SEP, 0, 0, 0]])
PARTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]])  # as BERT's tokenizer numbers them


def test_each_token_gets_the_vector_of_its_part_and_a_separator_that_of_the_part_it_ends():
    embedding = SegmentedEmbedding(10, 4, padding_idx=0, n_segments=2, sep_id=SEP)
    expected = embedding.weight[IDS] + embedding.segment.weight[PARTS]
    torch.testing.assert_close(embedding(IDS), expected)


def test_a_network_of_two_parts_tells_them_apart_and_padding_changes_nothing(network):
    pair = network(n_segments=2, sep_id=SEP, position="none")
    first, second = torch.tensor([[2, 5, SEP, 6, SEP]]), torch.tensor([[2, 6, SEP, 5, SEP]])
    mask = torch.ones(1, 5, dtype=torch.bool)
    assert not torch.allclose(pair(first, mask), pair(second, mask), atol=1e-4)
    padded = torch.cat([first, torch.zeros(1, 3, dtype=torch.long)], dim=1)
    longer = torch.cat([mask, torch.zeros(1, 3, dtype=torch.bool)], dim=1)
    torch.testing.assert_close(pair(padded, longer), pair(first, mask), atol=1e-6, rtol=1e-5)


def test_a_network_of_one_part_has_no_vectors_for_parts(network):
    assert not any("segment" in name for name in network().state_dict())
