"""How a model wants to be sampled, and what wins over it."""

from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.sampling_defaults import model_sampling, named, override


def test_a_models_own_sampling_is_used_and_options_win(tmp_path):
    assert model_sampling(tmp_path) == SamplingParams()
    file = tmp_path / "generation_config.json"
    file.write_text('{"temperature": 0.5, "top_p": 0.9, "top_k": 40, "eos_token_id": 1}')
    assert model_sampling(tmp_path) == SamplingParams(temperature=0.5, top_p=0.9, top_k=40)
    given = override(model_sampling(tmp_path), {"temperature": 0.0, "top_p": None, "seed": 4})
    assert given == SamplingParams(temperature=0.0, top_p=0.9, top_k=40, seed=4)
    file.write_text('{"do_sample": false, "temperature": 0.5}')
    assert model_sampling(tmp_path).temperature == 0
    nonsense = '{"temperature": "hot", "top_k": true}'
    outside = '{"top_k": -1, "top_p": 0, "temperature": Infinity}'
    for broken in ("[]", "{", nonsense, outside):
        file.write_text(broken)
        assert model_sampling(tmp_path) == SamplingParams()


def test_what_differs_from_neutral_has_a_name() -> None:
    assert named(SamplingParams()) == {}
    assert named(SamplingParams(temperature=0.0, top_k=5)) == {"temperature": 0.0, "top_k": 5}
