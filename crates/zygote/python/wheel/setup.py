"""The tag of the wheel: for one machine, because of its library, and for every Python 3, which loads it with ctypes."""

from __future__ import annotations

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    """Holds a compiled file, which setuptools does not see: nothing here compiles it."""

    def has_ext_modules(self) -> bool:
        """Makes the wheel one for this machine."""
        return True


class AnyPython(bdist_wheel):
    """A wheel that is tied to the machine alone."""

    def get_tag(self) -> tuple[str, str, str]:
        """No version of the interpreter, none of its binary interface."""
        return "py3", "none", super().get_tag()[2]


setup(distclass=WithLibrary, cmdclass={"bdist_wheel": AnyPython})
