"""A model folder: the fitted model, its guarantee and its report, side by side.

``model.json``
    The model as plain data: a tree of values in JSON.
``arrays.bin``
    The numbers of its arrays, one after another, as they lie in memory.
``report.html``
    The guarantee for human readers.
``guarantee.json``
    The guarantee in plain text, the digests (SHA-256) of the other files and of itself, and a
    record of public facts: what the report said of the two samples, an evaluation on people held
    out, how files were read.

Why a format of our own: a model folder may come from a stranger. Pickle runs code by design. A
general format that rebuilds objects by their names (skops) has to know functions, methods, partial
calls, reduced constructors and types as values, because any scikit-learn model may hold them, and
what may be combined with what is decided type by type. Our models need none of that. They are
numbers, texts, lists, dictionaries, arrays, and objects of some eighty classes. So this format can
say nothing else, and the reader is short enough to be read:

- The only names in a file are those of classes, and each must be on a closed list of exact names
  (:mod:`dpadapt.modelfolder.types`). All are checked before any object is made. Nothing is
  imported because a file names it.
- No functions, methods or classes are values, so nothing that a file says can be called. (The
  number types of numpy, such as float32, are the exception; some encoders hold one.)
- Our frozen value objects are made by their constructors, which check them. Estimators get the
  attributes of the file, but none that would hide a method, a property or a special name.
- A guarantee is rebuilt from its events: its epsilon is computed, not read.
- Objects of scikit-learn get only attributes that a fit could have made, checked by value, because
  its compiled code takes some of them for places in memory (:mod:`dpadapt.modelfolder.states`).
- Arrays are raw numbers of plain types and of known length: no archive that grows when it is
  unpacked, no pickle inside, no paths, and memory in proportion to the size of the files.

A caller can add names (``trusted``); whoever does that trusts those classes and functions with
whatever the file puts into them. Reasons to be careful: compiled code such as that of trees takes
the numbers of a node as places in memory, unchecked.

A digest without a key protects against accidents and mix-ups: damage, a half copied folder, files
of two models in one folder. It does not stop a forger, who can write new digests as well. What a
forger cannot do is run code, or state an epsilon that the events do not give. Whether the numbers
of a model are those of its fit, only its maker can say: get model folders from people you know.
"""

from .files import ModelExistsError, ModelFolderError, ModelWriteError
from .folder import Destination, check_destination, load_model, open_destination, save_model

__all__ = [
    "Destination",
    "ModelExistsError",
    "ModelFolderError",
    "ModelWriteError",
    "check_destination",
    "load_model",
    "open_destination",
    "save_model",
]
