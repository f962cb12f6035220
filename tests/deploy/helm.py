"""Helm itself, called from Python: com.marcnuri.helm-java on Maven Central carries Helm's Go code as a shared library.

The structures are those of the header that lies beside the library in its jar.
"""

import ctypes
import os

CHARACTERS, NUMBER = ctypes.c_char_p, ctypes.c_int


class Result(ctypes.Structure):
    _fields_ = [(name, CHARACTERS) for name in ("out", "err", "stdout", "stderr")]


class LintOptions(ctypes.Structure):
    _fields_ = [("path", CHARACTERS), ("strict", NUMBER), ("quiet", NUMBER)]


class TemplateOptions(ctypes.Structure):
    _fields_ = [
        ("name", CHARACTERS),
        ("version", CHARACTERS),
        ("chart", CHARACTERS),
        ("namespace", CHARACTERS),
        ("kube_version", CHARACTERS),
        ("dependency_update", NUMBER),
        ("skip_crds", NUMBER),
        ("values", CHARACTERS),
        ("set_files", CHARACTERS),
        ("values_files", CHARACTERS),
        ("cert_file", CHARACTERS),
        ("key_file", CHARACTERS),
        ("ca_file", CHARACTERS),
        ("insecure_skip_tls_verify", NUMBER),
        ("plain_http", NUMBER),
        ("keyring", CHARACTERS),
        ("debug", NUMBER),
        ("repository_config", CHARACTERS),
    ]


class HelmError(Exception):
    """What Helm says is wrong."""


class Helm:
    def __init__(self, library):
        self.library = ctypes.CDLL(os.path.abspath(library))
        for name in ("Version", "Lint", "Template"):
            getattr(self.library, name).restype = Result

    def _call(self, function, *arguments):
        result = getattr(self.library, function)(*arguments)
        if result.err:
            raise HelmError(result.err.decode())
        return (result.out or b"").decode()

    def version(self):
        return self._call("Version")

    def lint(self, chart):
        # Helm logs what a template refuses of the default values, which do not name the brokers; that is no finding.
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            return self._call("Lint", ctypes.byref(LintOptions(chart.encode(), 1, 0)))
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)

    def template(self, chart, values_file=None, kube_version="1.37.0"):
        """The manifests as text, hooks included, for a release `ticks` in the namespace `markets`."""
        options = TemplateOptions(name=b"ticks", chart=chart.encode(), namespace=b"markets", kube_version=kube_version.encode())
        if values_file:
            options.values_files = values_file.encode()
        return self._call("Template", ctypes.byref(options))
