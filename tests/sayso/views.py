"""Views for tests of what clients do with them."""

from typing import Any, TypeVar, get_origin

from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)


def view(model: type[ModelT], **fields: Any) -> ModelT:
    """Return a view with these fields as they are, and an empty value in each other one."""
    for name, field in model.model_fields.items():
        if field.is_required() and name not in fields:
            kind: Any = get_origin(field.annotation) or field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                fields[name] = view(kind)
            else:
                fields[name] = kind() if kind in {str, int, bool, tuple, list, dict} else None
    return model.model_construct(**fields)
