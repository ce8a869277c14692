"""Engines by name."""

import pytest

from gatepost.engines import EngineTarget, register, resolve
from gatepost.errors import EngineError


def test_built_in_engines_are_known() -> None:
    assert resolve("transformers") == EngineTarget("gatepost.engines.transformers:TransformersEngine", "transformers")
    assert resolve("scripted").extra is None


def test_an_import_string_stands_for_itself() -> None:
    assert resolve("my.engines:Fast") == EngineTarget("my.engines:Fast", None)


def test_a_registered_name_is_known() -> None:
    register("registry_test", "my.engines:Fast")
    register("registry_test", "my.engines:Fast")
    assert resolve("registry_test").import_string == "my.engines:Fast"
    with pytest.raises(EngineError, match=r"already my\.engines:Fast"):
        register("registry_test", "my.engines:Slow")
    with pytest.raises(EngineError, match=r"already gatepost\.engines\.scripted"):
        register("scripted", "my.engines:Fast")


@pytest.mark.parametrize("target", ["my.engines", "my.engines:", ":Fast", "my engines:Fast", "my.engines:a.b"])
def test_malformed_import_strings_are_refused(target: str) -> None:
    with pytest.raises(EngineError, match="module:Class"):
        register("registry_malformed", target)
    with pytest.raises(EngineError, match="is unknown, expected one of"):
        resolve(target)
