"""Dataclasses whose `__init__` is generated when the first instance is created.

A class behaves as with `dataclasses.dataclass`, and `asdict` and the like accept its instances. But
a process loads many classes and instantiates few: here, creating a class takes a tenth of the time,
and `dataclasses`, which loads `inspect`, is not loaded.
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


_MISSING, _FACTORY = _Sentinel("<missing>"), _Sentinel("<factory>")


class _Field(NamedTuple):
    name: str = ""
    type: Any = None
    kw_only: bool = False
    default: Any = _MISSING
    default_factory: Any = _MISSING
    repr: bool = True
    compare: bool = True


def _fields(of: Any) -> tuple[_Field, ...]:  # noqa: ANN401 - a class, or a value
    return tuple(of.__fields__.values())


def _replace(value: Any, /, **changes: object) -> object:  # noqa: ANN401 - of any dataclass
    return type(value)(**{name: getattr(value, name) for name in value.__fields__} | changes)


def _asdict(value: Any) -> Any:  # noqa: ANN401 - of any dataclass, or of a field
    if hasattr(value, "__fields__"):
        return {name: _asdict(getattr(value, name)) for name in value.__fields__}
    if isinstance(value, dict):
        return {key: _asdict(each) for key, each in value.items()}
    return type(value)(map(_asdict, value)) if isinstance(value, list | tuple) else value


def _dataclass(**options: bool) -> Callable[[type], type]:
    return lambda cls: _build(cls, **options)


def _build(  # noqa: PLR0913 - as the standard library has it
    cls: type,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    order: bool = False,
    eq: bool = True,
) -> type:
    namespace = dict(vars(cls))
    own = {
        name: _field_of(namespace.pop(name, _MISSING))._replace(
            name=name, type=kind, kw_only=kw_only
        )
        for name, kind in namespace.get("__annotations__", {}).items()
        if kind is not ClassVar and getattr(kind, "__origin__", None) is not ClassVar
    }
    bases = (vars(base).get("__fields__", {}) for base in cls.__mro__[:0:-1])
    every = {name: each for fields in (*bases, own) for name, each in fields.items()}
    built: dict[str, Any] = {
        "__qualname__": cls.__qualname__,
        "__fields__": every,
        "__dataclass_fields__": _StandardFields(),
        "__match_args__": tuple(each.name for each in every.values() if not each.kw_only),
        "__init__": _Init(is_frozen=frozen),
        "__repr__": _repr,
    }
    if eq:
        compared = [each.name for each in every.values() if each.compare]
        built["__compared__"] = operator.attrgetter(*compared) if compared else type
        built |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if "__eq__" in namespace and namespace["__hash__"] is None:  # set by Python
            del namespace["__hash__"]
    if order:
        built |= {f"__{name}__": _ordered(name) for name in ("lt", "le", "gt", "ge")}
    if frozen:
        built |= {"__setattr__": _refuse, "__delattr__": _refuse}
        built |= {"__getstate__": _getstate, "__setstate__": _setstate}
    if not slots:
        built |= {n: each.default for n, each in own.items() if each.default is not _MISSING}
    else:
        inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
        built["__slots__"] = tuple(name for name in own if name not in inherited)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    return type(cls)(cls.__name__, cls.__bases__, built | namespace)


def _field_of(value: object) -> _Field:
    return value if isinstance(value, _Field) else _Field(default=value)


class _Init:
    """A descriptor that replaces itself with the generated `__init__` on first access."""

    def __init__(self, *, is_frozen: bool) -> None:
        self._line = " _set(self, {0!r}, {1})" if is_frozen else " self.{0} = {1}"

    def __get__(self, value: object, owner: type) -> Any:  # noqa: ANN401 - a function, or a method
        cls: Any = next(base for base in owner.__mro__ if vars(base).get("__init__") is self)
        init = _write_init(cls, self._line)
        init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
        init.__annotations__ = {each.name: each.type for each in _fields(cls)} | {"return": None}
        cls.__init__ = init
        return init.__get__(value, owner)


def _write_init(cls: type, line: str) -> Any:  # noqa: ANN401 - a function
    names: dict[str, Any] = {"_set": object.__setattr__, "_made": _FACTORY}
    positional, keyword, lines = ["self"], ["*"], []
    for name, _, kw_only, default, factory, *_ in _fields(cls):
        argument = value = name
        if factory is not _MISSING:
            argument, value = f"{name}=_made", f"{name} if {name} is not _made else _{name}()"
            names[f"_{name}"] = factory
        elif default is not _MISSING:
            argument = f"{name}=_{name}"
            names[f"_{name}"] = default
        (keyword if kw_only else positional).append(argument)
        lines.append(line.format(name, value))
    lines.append(" self.__post_init__()" if hasattr(cls, "__post_init__") else " pass")
    arguments = ", ".join([*positional, *(keyword if len(keyword) > 1 else ())])
    exec("\n".join([f"def __init__({arguments}):", *lines]), names)  # noqa: S102 - names of fields
    return names["__init__"]


class _StandardFields:
    def __get__(self, _: object, owner: type) -> object:
        from dataclasses import field, make_dataclass  # noqa: PLC0415 - rarely needed

        namespace = []
        for each in _fields(owner):
            options = {key: value for key, value in each._asdict().items() if value is not _MISSING}
            namespace.append((options.pop("name"), options.pop("type"), field(**options)))
        return make_dataclass(owner.__name__, namespace).__dataclass_fields__  # type: ignore[attr-defined] # it is one


def _repr(self: Any) -> str:  # noqa: ANN401 - a value of any dataclass, as below
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:  # noqa: ANN401
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(self.__compared__(self))


def _ordered(name: str) -> Callable[[Any, Any], Any]:
    compare = getattr(operator, name)

    def ordered(self: Any, other: Any) -> Any:  # noqa: ANN401
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compare(self.__compared__(self), self.__compared__(other))

    return ordered


def _refuse(_: object, name: str, *__: object) -> None:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - rarely needed

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _getstate(self: Any) -> list[object]:  # noqa: ANN401
    return [getattr(self, name) for name in self.__fields__]


def _setstate(self: Any, state: list[object]) -> None:  # noqa: ANN401
    for name, value in zip(self.__fields__, state, strict=True):
        object.__setattr__(self, name, value)


if TYPE_CHECKING:  # type checkers know these
    from dataclasses import asdict, dataclass, field, fields, replace
else:
    asdict, dataclass, field = _asdict, _dataclass, _Field
    fields, replace = _fields, _replace
