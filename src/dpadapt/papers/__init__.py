"""The five papers' own algorithms, as printed and repaired, and what people would use instead.

A folder for each paper's method has what the default is measured against: algorithms, theorems,
bounds, certificates, and the mechanisms and events that only they need, under the same rules of
proof and review as :mod:`dpadapt.privacy`. Nothing else imports this package: a solver, a name of a
method's package, a mechanism or an event is found here by its name, when it is asked for.
"""
