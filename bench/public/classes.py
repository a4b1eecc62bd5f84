"""Convert classes and instances that are passed instead of names into the text that a plan reads."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from bench.registry import Registry, Scalar, Setting, UserError, show, signature_settings
from bench.sources import module_hash
from bench.temporary import replacing

CODE = "code"  # folder of a workspace for classes that were defined in a notebook
_AS_CLASS_ONLY = ("backbone", "readout")  # network modules: the harness creates a new one for each trial


def spec_of(registry: Registry, thing: Any, code: Path) -> str:
    """`name:key=value,...` for a name, class or instance; classes from a notebook are written to the folder `code`."""
    if isinstance(thing, str):
        return thing
    cls = thing if isinstance(thing, type) else type(thing)
    _check_kind(registry, cls, thing)
    if cls is not thing and registry.kind in _AS_CLASS_ONLY:
        raise UserError(f"a {registry.kind} is created anew for each trial; pass the class {cls.__name__} or its name")
    settings = signature_settings(cls)
    values = {name: _value(thing, cls, setting) for name, setting in settings.items()}
    _check_rest(registry, cls, thing, settings)
    name, fixed = _registered(registry, cls, values) or (_path(cls, code), ())
    written = {key: value for key, value in values.items() if key not in fixed}
    changed = [f"{key}={show(value)}" for key, value in written.items() if value != settings[key].default]
    spec = f"{name}:{','.join(changed)}" if changed else name
    if dict(registry.resolve(spec).settings) != written:
        raise UserError(f"the settings of {thing!r} cannot be written as {spec}; leave out commas and equal signs")
    return spec


def _check_kind(registry: Registry, cls: type, thing: Any) -> None:
    base = base_of(registry)
    if not issubclass(cls, base):
        kind = "the class" if cls is thing else "an instance of"
        raise UserError(
            f"{kind} {cls.__name__} cannot be used as the {registry.kind}; pass a name or a {base.__name__}"
        )


def base_of(registry: Registry) -> type:
    """The base class of all plug-ins of a kind."""
    module, _, name = registry.base.partition(":")
    base: type = getattr(importlib.import_module(module), name)
    return base


def _value(thing: Any, cls: type, setting: Setting) -> Scalar:
    if thing is cls:
        return setting.default
    try:
        value = getattr(thing, setting.name)
    except AttributeError:
        raise UserError(
            f"{cls.__name__} does not keep its setting {setting.name}; set self.{setting.name} in its constructor"
        ) from None
    return setting.check(value, cls.__name__)


def _check_rest(registry: Registry, cls: type, thing: Any, settings: dict[str, Setting]) -> None:
    """Each worker recreates an instance from its settings, so nothing else may affect its behavior."""
    if thing is cls:
        return
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.name in settings or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(thing, parameter.name, parameter.default)
        plain = parameter.default is not parameter.empty and (
            value is parameter.default or (type(value) is type(parameter.default) and bool(value == parameter.default))
        )
        if not plain:
            raise UserError(
                f"{cls.__name__}: {parameter.name} is not a setting that can be written as text (a number, string or "
                "boolean with a default); every worker creates the object from its settings"
            )


def _registered(registry: Registry, cls: type, values: dict[str, Scalar]) -> tuple[str, dict[str, Scalar]] | None:
    """The name under which a class is registered, and the settings fixed by that name; the most specific of several."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    found = [
        (entry.name, dict(entry.fixed))
        for entry in registry.entries().values()
        if entry.target == path and all(values.get(key) == value for key, value in entry.fixed.items())
    ]
    return max(found, key=lambda one: len(one[1])) if found else None


def _path(cls: type, code: Path) -> str:
    """A path `module:Class` that every process can import; a module is written if there is none."""
    module = cls.__module__
    if module != "__main__" and module_hash(module) is not None:
        if getattr(sys.modules.get(module), cls.__qualname__, None) is not cls:
            raise UserError(
                f"{cls.__qualname__} is not what {module} has under that name (it is defined inside a function, or "
                "the module was loaded again); define it at the top level of the file"
            )
        return f"{module}:{cls.__qualname__}"
    return f"{write_module(cls, code)}:{cls.__name__}"


def write_module(cls: type, code: Path) -> str:
    """Write a notebook's class to a folder on the import path; the file name is a hash of its content."""
    from bench.public.extraction import module_text

    text = module_text(cls)
    name = f"{cls.__name__}_{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
    path = code.absolute() / f"{name}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with replacing(path) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another workspace") from error
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ != str(path):  # the same text in another folder, perhaps gone
        del sys.modules[name]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # worker processes of this machine start with the same path
    importlib.invalidate_caches()
    return name


def is_written_here(spec: str, code: Path) -> bool:
    """Whether a spec names a class from a notebook, which other machines cannot import."""
    return (code / f"{spec.partition(':')[0]}.py").is_file()
