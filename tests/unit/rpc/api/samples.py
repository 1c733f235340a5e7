"""Messages with a different, non-default value in every field."""

from itertools import count

from google.protobuf.descriptor import FieldDescriptor

from rpc.api.convert.encode import is_map
from rpc.api.messages import message_class


class Samples:
    """Generate messages; `left_out` holds full names of fields that stay unset."""

    def __init__(self, left_out=frozenset(), depth=4):
        self.numbers = count(2)
        self.left_out = left_out
        self.depth = depth

    def message(self, descriptor, only=None):
        message = message_class(descriptor)()
        self.fill(message, self.depth, only)
        return message

    def fill(self, message, depth, only=None):
        full = message.DESCRIPTOR.full_name
        if full == "google.protobuf.Struct":
            n = next(self.numbers)
            message.update({"n": n, "t": "x", "b": True, "none": None, "l": [n, "y"], "m": {"k": n}})
        elif full == "google.protobuf.Value":
            message.number_value = next(self.numbers)
        elif full in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            message.seconds = next(self.numbers)
            message.nanos = 5000
        elif full == "viam.common.v1.ResourceName":
            message.namespace, message.type, message.subtype = "rdk", "component", "motor"
            message.name = f"m{next(self.numbers)}"
        elif depth:
            chosen = set()
            for field in message.DESCRIPTOR.fields:
                group = field.containing_oneof
                if field.full_name in self.left_out or (only is not None and field.name not in only):
                    continue
                if group is not None and group.name in chosen:
                    continue
                if group is not None:
                    chosen.add(group.name)
                self.fill_field(message, field, depth)

    def fill_field(self, message, field, depth):
        if is_map(field):
            value = field.message_type.fields[1]
            target = getattr(message, field.name)
            if value.message_type is None:
                target["key"] = self.scalar(value)
            else:
                self.fill(target["key"], depth - 1)
        elif field.is_repeated:
            for _ in range(2):
                if field.message_type is None:
                    getattr(message, field.name).append(self.scalar(field))
                else:
                    self.fill(getattr(message, field.name).add(), depth - 1)
        elif field.message_type is not None:
            part = getattr(message, field.name)
            part.SetInParent()
            self.fill(part, depth - 1)
        else:
            setattr(message, field.name, self.scalar(field))

    def scalar(self, field):
        n = next(self.numbers)
        if field.enum_type is not None:
            return field.enum_type.values[-1].number
        if field.type == FieldDescriptor.TYPE_BYTES:
            return b"%d" % n
        kinds = {FieldDescriptor.CPPTYPE_STRING: f"t{n}", FieldDescriptor.CPPTYPE_BOOL: True}
        if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
            return n + 0.5
        return kinds.get(field.cpp_type, n)


def wire(message):
    """Return the message as the peer receives it, serialized and parsed."""
    return type(message).FromString(message.SerializeToString())
