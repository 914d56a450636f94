"""The tables and figures of the papers, run again with ours beside them; a folder for each paper.

Not part of the installed package. From the root of the project::

    python -m reproduce --help
    python -m reproduce 001 --figure table-1

In the folder of a paper, ``page.py`` says what is run and how far it is the paper's; the other
files are named after what they show (``figure_3.py``, ``table_1.py``), or hold data and methods.
"""
