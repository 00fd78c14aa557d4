"""numpy_linalg.py WHAT N: GFLOP/s of one call of NumPy."""
import sys
import time

import numpy

what, n = sys.argv[1], int(sys.argv[2])
a = numpy.random.rand(n, n) + n * numpy.eye(n)
s = a + a.T
numpy.dot(a[:256, :256], a[:256, :256])
began = time.perf_counter()
if what == "matmul":
    numpy.dot(a, s)
elif what == "cholesky":
    numpy.linalg.cholesky(s)
elif what == "qr":
    numpy.linalg.qr(a, mode="r")
else:
    sys.exit("not in NumPy")
seconds = time.perf_counter() - began
print({"matmul": 2, "cholesky": 1 / 3, "qr": 4 / 3}[what] * n**3 / seconds / 1e9)
