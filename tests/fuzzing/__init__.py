"""Spoilt files for every reader: good files drawn by Hypothesis, then changed, and what reads them.

:mod:`.drawn` has the files, :mod:`.readers` what reads each kind, and :mod:`.guided` lets Atheris choose the changes
by the branches that they reach. What is read is either fine or refused by an error of minmaxcon in one line.
"""
