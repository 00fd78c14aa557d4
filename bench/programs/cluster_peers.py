"""cluster_peers.py SYSTEM CASE COUNT: what bench/cluster.bench.ts measures, done by another system with two workers on this machine.

SYSTEM is dask, ray, parsl or hyperqueue. CASE is flat (tasks per second), chain (milliseconds per task that waits for the one before) or
other (milliseconds to read 100 MB that lie on another worker). Prints { "value": number }.
"""
import json
import sys
import time


def empty(_=None):
    return None


def following(x):
    return x + 1


def make(size):
    import numpy

    return numpy.ones(size)


def last(array):
    return float(array[-1])


def median_of_three(measure):
    return sorted(measure() for _ in range(3))[1] * 1000


def run_dask(case, count):
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        client.gather(client.map(empty, range(100), pure=False))
        if case == "flat":
            start = time.perf_counter()
            client.gather(client.map(empty, range(count), pure=False))
            return count / (time.perf_counter() - start)
        if case == "chain":
            start = time.perf_counter()
            future = client.submit(following, 0, pure=False)
            for _ in range(count - 1):
                future = client.submit(following, future, pure=False)
            future.result()
            return (time.perf_counter() - start) / count * 1000
        first, second = list(client.scheduler_info(n_workers=-1)["workers"])[:2]

        def once():
            array = client.submit(make, count, pure=False, workers=[first])
            client.submit(last, array, pure=False, workers=[first]).result()
            start = time.perf_counter()
            client.submit(last, array, pure=False, workers=[second]).result()
            return time.perf_counter() - start

        return median_of_three(once)


def run_ray(case, count):
    import ray

    if case == "other":
        # Workers of one node share its memory: a second node is what has to be sent something.
        from ray.cluster_utils import Cluster

        cluster = Cluster()
        cluster.add_node(num_cpus=1, resources={"n1": 1})
        cluster.add_node(num_cpus=1, resources={"n2": 1})
        ray.init(address=cluster.address, include_dashboard=False, logging_level="ERROR")
        on_first = ray.remote(num_cpus=0, resources={"n1": 0.1})
        on_second = ray.remote(num_cpus=0, resources={"n2": 0.1})
        ray.get(on_second(empty).remote())

        def once():
            array = on_first(make).remote(count)
            ray.get(on_first(last).remote(array))
            start = time.perf_counter()
            ray.get(on_second(last).remote(array))
            return time.perf_counter() - start

        return median_of_three(once)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    empty_there, following_there = ray.remote(empty), ray.remote(following)
    ray.get([empty_there.remote() for _ in range(100)])
    start = time.perf_counter()
    if case == "flat":
        ray.get([empty_there.remote() for _ in range(count)])
        return count / (time.perf_counter() - start)
    value = following_there.remote(0)
    for _ in range(count - 1):
        value = following_there.remote(value)
    ray.get(value)
    return (time.perf_counter() - start) / count * 1000


def run_parsl(case, count):
    import parsl
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    executor = HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, provider=LocalProvider(init_blocks=1, max_blocks=1)
    )
    with parsl.load(Config(executors=[executor], strategy="none", run_dir="runinfo")):
        empty_there, following_there = parsl.python_app(empty), parsl.python_app(following)
        for future in [empty_there() for _ in range(100)]:
            future.result()
        start = time.perf_counter()
        if case == "flat":
            for future in [empty_there() for _ in range(count)]:
                future.result()
            return count / (time.perf_counter() - start)
        value = following_there(0)
        for _ in range(count - 1):
            value = following_there(value)
        value.result()
        return (time.perf_counter() - start) / count * 1000


def run_hyperqueue(case, count):
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig

    with LocalCluster() as cluster:
        for _ in range(2):
            cluster.start_worker(WorkerConfig(cores=1))
        client = cluster.client()

        def submit(tasks, chain):
            job = Job()
            before = None
            for _ in range(tasks):
                before = job.program(["/bin/true"], deps=[before] if chain and before else ())
            client.wait_for_jobs([client.submit(job)])

        submit(10, False)
        start = time.perf_counter()
        submit(count, case == "chain")
        took = time.perf_counter() - start
        return count / took if case == "flat" else took / count * 1000


if __name__ == "__main__":
    system, case, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    run = {"dask": run_dask, "ray": run_ray, "parsl": run_parsl, "hyperqueue": run_hyperqueue}[system]
    value = run(case, count)
    print(json.dumps({"value": value}), flush=True)
