"""Tensors of every type: as arrays, over the wire, and invalid ones."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.services.mlmodel import FlatTensor, FlatTensors, MLModel
from models.mlmodel.tensors import TYPES, data_type_of, tensor, values
from rpc.api.client import methods_for
from rpc.api.convert.decode import message_reader
from rpc.api.convert.encode import message_fill
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import Hint
from schema.errors import ErrorKind, MachineError


def over_the_wire(given_tensors: FlatTensors) -> FlatTensors:
    """Encode the tensors in the published message and decode them again."""
    infer = methods_for(MLModel.API)["infer"]
    descriptor = infer.request.fields_by_name["input_tensors"].message_type
    message = infer.request_class().input_tensors
    message_fill(descriptor)(message, given_tensors)
    again = infer.request_class().input_tensors
    again.ParseFromString(message.SerializeToString())
    result: FlatTensors = message_reader(descriptor, Hint(cls=FlatTensors))(again)
    return result


def numbers(data_type: str) -> st.SearchStrategy[list[Any]]:
    if data_type.startswith("float"):
        width = 32 if data_type == "float32" else 64
        return st.lists(
            st.floats(width=width, allow_nan=False, allow_infinity=False, max_value=2.0**100, min_value=-(2.0**100))
        )
    bits, unsigned = int(data_type.removeprefix("u").removeprefix("int")), data_type.startswith("u")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.lists(st.integers(low, high))


@given(st.data())
def test_every_type_comes_over_the_wire_as_it_was(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(sorted(TYPES)))
    expected = array(TYPES[data_type][1], data.draw(numbers(data_type)))
    sent = FlatTensors({"t": tensor(data_type, [len(expected), 1], expected.tobytes())})
    assert values(sent.tensors["t"], "t") == expected
    came = over_the_wire(sent).tensors["t"]
    assert data_type_of(came, "t") == data_type
    assert list(came.shape) == [len(expected), 1]
    assert values(came, "t") == expected
    assert values(came, "t").typecode == expected.typecode


def test_sixteen_bits_of_others_may_be_extended_by_their_sign() -> None:
    assert list(values(FlatTensor([3], int16_tensor=[0xFFFFFFFF, 0x8000, 5]), "t")) == [-1, -32768, 5]


@pytest.mark.parametrize(
    ("given_tensor", "words"),
    [
        (FlatTensor([1]), "'t' has no values"),
        (FlatTensor([1], float_tensor=[1.0], uint8_tensor=b"1"), "uint8 and float32 values"),
        (FlatTensor([2, 2], float_tensor=[1.0]), "1 values, which does not match its shape .2, 2."),
        (FlatTensor([-1, -1], float_tensor=[1.0]), "does not match its shape"),
        (FlatTensor([1], int32_tensor=[2**40]), "has values that are not int32"),
    ],
)
def test_errors_name_the_value_that_does_not_fit(given_tensor: FlatTensor, words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        values(given_tensor, "t")
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize(
    "given_tensor", [FlatTensor([1], uint32_tensor=array("b", [-1])), FlatTensor([1], float_tensor=array("d", [1e300]))]
)
def test_arrays_of_another_width_are_looked_at_before_they_are_written(given_tensor: FlatTensor) -> None:
    with pytest.raises(FitError):
        over_the_wire(FlatTensors({"t": given_tensor}))
