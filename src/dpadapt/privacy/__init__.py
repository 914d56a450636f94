"""The trusted core: the only package that reads private rows."""
