"""The decoder that calibration computes: against plain references, through block tables, refused models."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.calibrate import model as decoders
from simkv.calibrate.backend import Backend, open_backend
from simkv.calibrate.decode import decode_step
from simkv.calibrate.model import EPSILON, ROTARY_BASE, Decoder
from simkv.calibrate.plain import plain_sizes
from simkv.errors import InputError
from simkv.model import AttentionLayers, ModelShape
from tests import shapes
from tests.torch_here import torch_or_skip

torch = torch_or_skip()
BLOCK = 4
SHAPE = shapes.uniform(3, kv_heads=2, head_dim=8, heads=4, hidden=24, intermediate=40, vocab=50)


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("cpu", threads=1)


@pytest.fixture(scope="module")
def model(backend: Backend) -> Decoder:
    return Decoder(backend, SHAPE)


def pool_of(model: Decoder, slots: int) -> Any:
    """Return a pool with random KV in every slot."""
    memory = torch.zeros(slots, model.piece_bytes(BLOCK), dtype=torch.uint8)
    pool = model.view_pool(memory)
    pool.normal_(generator=torch.Generator().manual_seed(1))
    return pool


def drawn(*size: int, seed: int = 2) -> Any:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def reference_attention(q: Any, k: Any, v: Any) -> Any:
    """Return softmax(qk/sqrt(d))v head by head in float64: q [heads, d], k and v [kv_heads, tokens, d]."""
    group = len(q) // len(k)
    rows = []
    for head, query in enumerate(q.double()):
        keys, values = k[head // group].double(), v[head // group].double()
        rows.append(torch.softmax(keys @ query / len(query) ** 0.5, 0) @ values)
    return torch.cat(rows)


def reference_norm(x: Any) -> Any:
    x = x.double()
    return x / (x.pow(2).mean(-1, keepdim=True) + EPSILON).sqrt()


@given(batch=st.integers(1, 3), blocks=st.integers(1, 5), short=st.integers(0, BLOCK - 1), seed=st.integers(0, 99))
def test_attend_paged_any_table_equals_contiguous_attention_bit_for_bit(
    model: Decoder, batch: int, blocks: int, short: int, seed: int
) -> None:
    pool, length = pool_of(model, 20), blocks * BLOCK - short
    table = torch.randperm(20, generator=torch.Generator().manual_seed(seed))[: batch * blocks].view(batch, blocks)
    q = drawn(batch, 4, 8, seed=seed)
    rows = [torch.cat([pool[slot] for slot in row], 2)[:, :, :length] for row in table.tolist()]
    k, v = torch.stack(rows, 1).contiguous()
    paged = model.attend_paged(q, pool, table, length)
    assert torch.equal(paged, model.attend(q, k, v))
    for number in range(batch):
        torch.testing.assert_close(
            paged[number].double(), reference_attention(q[number], k[number], v[number]), atol=2e-6, rtol=0
        )


def test_attend_paged_what_lies_beyond_the_length_has_no_effect(model: Decoder) -> None:
    pool, table, q = pool_of(model, 6), torch.tensor([[4, 1]]), drawn(1, 4, 8)
    before = model.attend_paged(q, pool, table, 6).clone()
    pool[1, :, :, 2:] = 1e9
    assert torch.equal(model.attend_paged(q, pool, table, 6), before)
    pool[1, :, :, 1] = 0.0
    assert not torch.equal(model.attend_paged(q, pool, table, 6), before)


def test_project_two_positions_turns_q_and_k_as_complex_numbers(model: Decoder) -> None:
    x, positions = drawn(2, 24), torch.tensor([0, 7])
    q, k, v = model.project(1, x, positions)
    plain = (reference_norm(x) @ model.weights[1].qkv.double().T).view(2, 8, 8)
    angles = positions.double()[:, None] * ROTARY_BASE ** -(torch.arange(4).double() / 4)
    turned = torch.complex(plain[:, :6, :4], plain[:, :6, 4:]) * torch.exp(1j * angles)[:, None]
    expected = torch.cat((turned.real, turned.imag), -1)
    torch.testing.assert_close(torch.cat((q, k), 1).double(), expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(v.double(), plain[:, 6:], atol=2e-6, rtol=0)


def test_close_some_rows_adds_projected_attention_and_gated_mlp(model: Decoder) -> None:
    x, attention, weights = drawn(3, 24), drawn(3, 32, seed=3), model.weights[2]
    middle = x.double() + attention.double() @ weights.out.double().T
    gate, up = (reference_norm(middle) @ weights.gate_up.double().T).chunk(2, -1)
    expected = middle + (gate / (1 + torch.exp(-gate)) * up) @ weights.down.double().T
    torch.testing.assert_close(model.close(2, x, attention).double(), expected, atol=1e-5, rtol=0)


def test_decode_step_token_by_token_agrees_with_causal_attention_over_all(model: Decoder) -> None:
    tokens, blocks = [3, 41, 7, 19, 2, 30], 2
    pool = pool_of(model, 3 * blocks)
    tables = torch.tensor([[[5, 0]], [[3, 1]], [[2, 4]]])
    for position, token in enumerate(tokens):
        length, here = position + 1, -(-(position + 1) // BLOCK)
        found = decode_step(
            model, torch.tensor([token]), torch.tensor([position]), pool, list(tables[:, :, :here]), length
        )
    x = model.embed(torch.tensor(tokens))
    for layer in range(3):
        q, k, v = (part.transpose(0, 1).unsqueeze(0) for part in model.project(layer, x, torch.arange(6)))
        x = model.close(layer, x, model.prefill(q, k, v)[0].transpose(0, 1).reshape(6, -1))
        written = model.gather(pool, tables[layer])[0, 0, :, :6]
        torch.testing.assert_close(written, k[0], atol=1e-5, rtol=1e-5)
    assert found.tolist() == model.head(x[-1:]).tolist()


def test_decode_step_same_inputs_gives_the_same_bits(backend: Backend) -> None:
    outputs = []
    for _ in range(2):
        model, seen = Decoder(backend, SHAPE, seed=5), []
        pool, tables = pool_of(model, 12), torch.arange(12).view(3, 2, 2)
        tokens = decode_step(
            model, torch.tensor([1, 2]), torch.tensor([6, 6]), pool, list(tables), 7,
            after=lambda layer, out, seen=seen: seen.append(out.clone()),
        )  # fmt: skip
        outputs.append((tokens, pool, seen))
    (tokens, pool, seen), (again, pool_again, seen_again) = outputs
    assert torch.equal(tokens, again)
    assert torch.equal(pool, pool_again)
    assert len(seen) == 3
    assert all(torch.equal(one, other) for one, other in zip(seen, seen_again, strict=True))


def test_decode_step_pieces_that_come_late_are_read_where_the_hook_put_them(model: Decoder) -> None:
    resident, elsewhere = pool_of(model, 6), pool_of(model, 9)
    tables = [torch.tensor([[2 * layer, 2 * layer + 1]]) for layer in range(3)]
    late = [torch.tensor([[8, 2 * layer + 1]]) for layer in range(3)]
    called: list[int] = []

    def before(layer: int) -> None:
        called.append(layer)
        elsewhere[8] = resident[2 * layer]
        elsewhere[2 * layer] = float("nan")
        late_tables[layer] = late[layer]

    outputs: dict[str, list[Any]] = {"resident": [], "late": []}
    late_tables = [torch.tensor([[0, 0]])] * 3
    step = (model, torch.tensor([9]), torch.tensor([6]))
    decode_step(*step, resident, tables, 7, after=lambda _, out: outputs["resident"].append(out.clone()))
    decode_step(*step, elsewhere, late_tables, 7, before, lambda _, out: outputs["late"].append(out.clone()))
    assert called == [0, 1, 2]
    assert all(torch.equal(one, other) for one, other in zip(*outputs.values(), strict=True))


def test_write_one_token_changes_that_token_alone(model: Decoder) -> None:
    pool, k, v = pool_of(model, 5), drawn(2, 2, 8), drawn(2, 2, 8, seed=4)
    expected = pool.clone()
    expected[3, 0, :, 2], expected[3, 1, :, 2] = k[0], v[0]
    expected[1, 0, :, 2], expected[1, 1, :, 2] = k[1], v[1]
    model.write(pool, torch.tensor([3, 1]), 2, k, v)
    assert torch.equal(pool, expected)


def test_view_pool_bytes_shares_memory_in_pieces(model: Decoder) -> None:
    memory = torch.zeros(3, model.piece_bytes(BLOCK), dtype=torch.uint8)
    pool = model.view_pool(memory)
    assert model.piece_bytes(BLOCK) == 2 * 2 * BLOCK * 8 * 4
    assert pool.shape == (3, 2, 2, BLOCK, 8)
    pool[1] = 1.0
    assert memory.view(torch.float32).sum(1).tolist() == [0.0, 2 * 2 * BLOCK * 8, 0.0]


def test_weights_by_seed_and_layer_are_distinct(backend: Backend, model: Decoder) -> None:
    assert torch.equal(Decoder(backend, SHAPE).weights[2].qkv, model.weights[2].qkv)
    assert not torch.equal(Decoder(backend, SHAPE, seed=1).weights[2].qkv, model.weights[2].qkv)
    assert len({layer.qkv.data_ptr() for layer in model.weights}) == 3
    assert not model.share_layers
    assert model.lm_head is not model.embedding
    counted = sum(part.numel() for part in vars(model.weights[0]).values())
    assert counted * 4 == model.layer_bytes


def test_weights_shared_and_tied_are_reused(backend: Backend) -> None:
    shape = dataclasses.replace(SHAPE, tie_embeddings=True)
    model = Decoder(backend, shape, layers=5, share_layers=True)
    assert (model.layers, len(model.weights), model.share_layers) == (5, 2, True)
    assert model.lm_head is model.embedding
    x, positions = drawn(1, 24), torch.tensor([3])
    assert torch.equal(model.project(4, x, positions)[0], model.project(0, x, positions)[0])


def test_shared_layers_on_a_gpu_of_little_memory_fit_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = shapes.uniform(32)
    sizes, gpu = plain_sizes(shape), Backend("cuda", torch.device("cpu"), "bf16", 1)
    for free, distinct in ((80 << 30, 32), (24 << 30, 16), (8 << 30, 5)):
        monkeypatch.setattr(decoders, "free_device_bytes", lambda backend, free=free: free)
        assert decoders._distinct_layers(gpu, sizes, None) == distinct
        assert distinct == 32 or 2 * (sizes.head_params + distinct * sizes.layer_params) <= free // 2


def test_decoder_larger_than_memory_is_refused(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "free_device_bytes", lambda backend: 1 << 30)
    with pytest.raises(InputError, match=r"--model = uniform: its weights take 29\.9 GiB of the 1\.0 GiB"):
        Decoder(backend, shapes.uniform(32))


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (shapes.gpt_oss(24, 32), "experts, attention windows, several kinds of attention"),
        (shapes.deepseek_v32(), r"latent attention \(MLA\)"),
        (shapes.kimi_linear(), "layers that keep a state"),
        (shapes.mistral_7b_v01(), "attention windows"),
        (shapes.gemma_3_27b(), "attention windows"),
        (shapes.qwen_27b(), "layers that keep a state"),
        (shapes.uniform(4, mlp_matrices=2, learned_positions=2048), "MLPs without a gate, learned positions"),
        (shapes.uniform(4, dense_mlp_layers=2), "layers without an MLP"),
        (ModelShape("odd", 2, 30, (AttentionLayers(2, 2, 2, 15),), 40, 50, "bf16", 64), "heads of odd width"),
    ],
    ids=lambda value: value.name if isinstance(value, ModelShape) else "",
)
def test_decoder_of_another_kind_is_refused_with_the_reason(shape: ModelShape, why: str) -> None:
    with pytest.raises(InputError, match=f"plain dense decoders, and this has .*{why}.*name another with --model"):
        plain_sizes(shape)
