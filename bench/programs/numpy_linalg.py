"""numpy_linalg.py WHAT N: GFLOP/s of one call of NumPy."""
import os
import sys
import time

import numpy

what, n = sys.argv[1], int(sys.argv[2])
a = numpy.random.rand(n, n) + n * numpy.eye(n)
s = a + a.T
numpy.dot(a[:256, :256], a[:256, :256])
clock = time.process_time if os.environ.get("BENCH_CPU_TIME") == "1" else time.perf_counter
began = clock()
if what == "matmul":
    numpy.dot(a, s)
elif what == "cholesky":
    numpy.linalg.cholesky(s)
elif what == "qr":
    numpy.linalg.qr(a, mode="r")
else:
    sys.exit("not in NumPy")
seconds = clock() - began
print({"matmul": 2, "cholesky": 1 / 3, "qr": 4 / 3}[what] * n**3 / seconds / 1e9)
