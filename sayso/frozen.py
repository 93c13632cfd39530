"""Be what every value of the language is: strict about its fields, and never changed."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

_set = object.__setattr__


class Frozen(BaseModel):  # noqa: PLW1641 - pydantic gives every frozen model its own hash
    """A value that refuses unknown fields and is replaced, not changed.

    Copying and comparing are what verbs do all day; both are pydantic's, without what frozen values have no use for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return this value with some fields replaced."""
        if deep:
            return super().model_copy(update=update, deep=True)
        made = self.__class__.__new__(self.__class__)
        _set(made, "__dict__", {**self.__dict__, **(update or {})})
        _set(made, "__pydantic_fields_set__", self.__pydantic_fields_set__.union(update or ()))
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", self.__pydantic_private__)
        return made

    def __eq__(self, other: object) -> bool:
        """Whether it is the same kind of value with the same fields."""
        return self is other or super().__eq__(other)
