#!/usr/bin/env python3
"""Writes the direction numbers that Sobol sequences begin with, of the first 256 dimensions, from SciPy's copy of the table of Joe and
Kuo (`new-joe-kuo-6.21201`).

    venv/bin/python tests/scripts/make_sobol_table.py
"""

from pathlib import Path

import numpy
import scipy.stats

DIMENSIONS = 256
TABLE = Path(__file__).resolve().parents[2] / "kernels/src/math/sobol.txt"
HEAD = """\
# Direction numbers of Sobol sequences: S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections,
# SIAM J. Sci. Comput. 30, 2635-2654 (2008). The first 256 dimensions of new-joe-kuo-6.21201, by tests/scripts/make_sobol_table.py.
# In each row, a dimension: its primitive polynomial, as a number whose bits are the coefficients, then m_1, m_2 and so on, as many
# as the polynomial's degree. The first dimension has none: all of its m are 1.
#
# Copyright (c) 2008, Frances Y. Kuo and Stephen Joe
# All rights reserved.
#
# Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following
# conditions are met:
#
#     * Redistributions of source code must retain the above copyright notice, this list of conditions and the following
#       disclaimer.
#
#     * Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
#       disclaimer in the documentation and/or other materials provided with the distribution.
#
#     * Neither the names of the copyright holders nor the names of the University of New South Wales and the University of
#       Waikato and its contributors may be used to endorse or promote products derived from this software without specific
#       prior written permission.
#
# THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS ``AS IS'' AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED
# TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE
# COPYRIGHT HOLDERS OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES
# (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
# INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING
# NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""


def main():
    table = numpy.load(Path(scipy.stats.__file__).parent / "_sobol_direction_numbers.npz")
    rows = ["1"]
    for polynomial, numbers in zip(table["poly"][1:DIMENSIONS], table["vinit"][1:DIMENSIONS]):
        degree = int(polynomial).bit_length() - 1
        rows.append(" ".join(map(str, [polynomial, *numbers[:degree]])))
    TABLE.write_text(HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
