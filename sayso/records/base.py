"""Be what every value of the language is: strict about its fields, and never changed."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

_put = object.__setattr__


class Immutable(BaseModel):  # noqa: PLW1641  pydantic gives every frozen model its hash
    """A value that refuses unknown fields and is replaced, not changed.

    Copying and comparing come to what they do in every model; a verb copies several values and saving one compares it
    with all its defaults, so they leave out what a value without extra or private fields has no use for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return the value with some fields replaced; what they are replaced with is not validated."""
        if deep or self.__pydantic_private__ is not None:
            return super().model_copy(update=update, deep=deep)
        cls = type(self)
        copied = cls.__new__(cls)
        given = update or {}
        _put(copied, "__dict__", {**self.__dict__, **given})
        _put(copied, "__pydantic_extra__", None)
        _put(copied, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *given})
        _put(copied, "__pydantic_private__", None)
        return copied

    def __eq__(self, other: object) -> bool:
        """Whether it is the same, or of the same kind with the same fields."""
        if self is other:
            return True
        if type(self) is not type(other) or self.__pydantic_private__ is not None:
            return super().__eq__(other)
        same = self.__dict__ == other.__dict__
        return same or (len(self.__dict__) != len(type(self).__pydantic_fields__) and super().__eq__(other))
