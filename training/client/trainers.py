"""The trainers of this project as training scripts of the registry, which anyone can copy and change. Blocking.

A script is a package with the sources of its trainer: `model/training.py`, the modules that it imports, the weights,
and `requirements.txt`. The archive depends only on these files and the version of this program.
"""

from __future__ import annotations

import ast
import gzip
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from schema.doors import open_door
from support import version

ROOT: Final = Path(__file__).resolve().parents[2]  # folder of the packages
OWN: Final = ("schema", "support", "training")  # packages whose modules are copied
ENTRY: Final = "model/training.py"
WEIGHTS: Final = ("training/weights/mobilenet_v2.onnx", "training/weights/NOTICE", "training/weights/LICENSE")
REQUIREMENTS: Final = ("msgspec>=0.20", "numpy>=2", "onnxruntime>=1.22", "pillow>=11", "protobuf>=5")
_NOTICE: Final = """The trainer {name} of machine-runtime {version}.

Licensed under the Apache License, Version 2.0, see the file LICENSE. The weights have their own notice in
training/weights/NOTICE; models that are trained from them contain them, and get both files.
"""
_README: Final = """# {name}

{about}. This is the trainer of machine-runtime {version} as a training script of the registry: change it, pack it with

    tar -czf ../script.tar.gz .

and upload it. It starts with `model/training.py`. Arguments of a job: `labels` (with commas between; by default all),
`seed`{more}. `requirements.txt` has the packages that it needs.
"""


@dataclass(frozen=True, slots=True)
class Trainer:
    """A trainer that can be copied."""

    about: str
    module: str  # becomes ENTRY
    arguments: str = ""  # further arguments of its jobs, for people
    requirements: tuple[str, ...] = REQUIREMENTS


TRAINERS: Final[Mapping[str, Trainer]] = {
    "classification": Trainer(
        "Classifiers from tagged pictures: a linear layer on a frozen, pretrained network",
        "training.trainers.scripts.classification",
        "`model_type` (single_label_classification or multi_label_classification)",
    ),
    "detection": Trainer(
        "Detectors from pictures with boxes: a small network on a frozen, pretrained one",
        "training.trainers.scripts.detection",
    ),
    "finetune": Trainer(
        "Classifiers from tagged pictures: the last layers of a pretrained network are trained too, with PyTorch",
        "training.trainers.scripts.finetune",
        "`model_type` (single_label_classification or multi_label_classification), `epochs`, `layers`, `mirror` and"
        " `device`",
        (*REQUIREMENTS, "torch>=2.6"),
    ),
    "finetune-detection": Trainer(
        "Detectors from pictures with boxes: the last layers of a pretrained network are trained too, with PyTorch",
        "training.trainers.scripts.finetune_detection",
        "`epochs`, `layers` and `device`",
        (*REQUIREMENTS, "torch>=2.6"),
    ),
}


def trainer_archive(name: str) -> bytes:
    """Return the .tar.gz of a trainer. NOT_FOUND for another name."""
    content = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=content, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in sorted(_files(name).items()):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return content.getvalue()


def _files(name: str) -> dict[str, bytes]:
    if name not in TRAINERS:
        raise MachineError(
            f"there is no trainer {name!r}", kind=ErrorKind.NOT_FOUND, remedy=f"choose one of {', '.join(TRAINERS)}"
        )
    trainer = TRAINERS[name]
    entry = _file_of(trainer.module)
    assert entry is not None
    words = {"name": name, "version": version(), "about": trainer.about}
    more = f", {trainer.arguments}" if trainer.arguments else ""
    texts = {
        "requirements.txt": "".join(f"{line}\n" for line in trainer.requirements),
        "README.md": _README.format(**words, more=more),
        "NOTICE": _NOTICE.format(**words),
        "model/__init__.py": "",
    }
    copied = {
        str(path.relative_to(ROOT)): path.read_bytes() for path in sorted(_sources(trainer.module)) if path != entry
    }
    return {
        **copied,
        **{path: (ROOT / path).read_bytes() for path in WEIGHTS},
        **{path: text.encode() for path, text in texts.items()},
        "LICENSE": (ROOT / WEIGHTS[2]).read_bytes(),  # the same license
        ENTRY: entry.read_bytes(),
    }


def _sources(module: str) -> set[Path]:
    """Return the file of a module, and those of all modules of this project that it needs."""
    sources: set[Path] = set()
    pending = {module}
    while pending:
        name = pending.pop()
        file = _file_of(name)
        if name.split(".")[0] not in OWN or file is None or file in sources:
            continue
        sources.add(file)
        pending |= {name.rpartition(".")[0], *_imports(ast.parse(file.read_text(encoding="utf-8")).body)} - {""}
    return sources


def _file_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _imports(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what statements import anywhere, apart from what only type checkers see."""
    for statement in body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from _imports(statement.orelse)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                places = _door(node.module)
                yield node.module
                yield from (f"{node.module}.{places.get(alias.name, alias.name)}" for alias in node.names)


def _door(module: str) -> Mapping[str, str]:
    """Return the module of each name that a package loads when it is first used; see schema.doors."""
    file = _file_of(module)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == open_door.__name__:
            return {name: place for place, names in ast.literal_eval(node.args[1]).items() for name in names}
    return {}
