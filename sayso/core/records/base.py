"""The base class of all records."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, field_serializer

from sayso.core.packages import VERSION


def is_empty(value: object) -> bool:
    """Return whether a field has no value, so that dumps leave it out."""
    return not value


_put = object.__setattr__


def is_none(value: object) -> bool:
    """Return whether a field is left out where only None is."""
    return value is None


class Immutable(BaseModel):  # noqa: PLW1641  pydantic gives every frozen model its hash
    """A frozen model that refuses unknown fields.

    `model_copy` and `__eq__` behave as in pydantic, but skip the work for extra and private fields.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        if deep or self.__pydantic_private__ is not None:
            return super().model_copy(update=update, deep=deep)
        cls = type(self)
        copied = cls.__new__(cls)
        replaced = update or {}
        _put(copied, "__dict__", {**self.__dict__, **replaced})
        _put(copied, "__pydantic_extra__", None)
        _put(copied, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *replaced})
        _put(copied, "__pydantic_private__", None)
        return copied

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self.__pydantic_private__ is not None:
            return super().__eq__(other)
        if self.__dict__ == other.__dict__:
            return True
        fields = len(type(self).__pydantic_fields__)  # with more, cached properties differ
        return not len(self.__dict__) == len(other.__dict__) == fields and super().__eq__(other)


class Stored(Immutable):
    """A record with a place of its own in the store. It carries the release of Sayso that wrote it last."""

    release: str = VERSION

    @field_serializer("release")
    def _name_release(self, _: str) -> str:
        return VERSION
