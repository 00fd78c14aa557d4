"""dask_tasks.py KIND TASKS: prints the seconds that Dask takes for no-op tasks, flat or in a chain."""
import sys
import time


def echo(x):
    return x


def with_distributed(tasks, chain):
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        client.gather(client.map(echo, range(-100, 0), pure=False))
        start = time.perf_counter()
        if chain:
            future = client.submit(echo, 0, pure=False)
            for _ in range(tasks - 1):
                future = client.submit(echo, future, pure=False)
            future.result()
        else:
            client.gather(client.map(echo, range(tasks), pure=False))
        return time.perf_counter() - start


def with_threads(tasks, chain):
    import dask
    from dask.threaded import get

    # Keys are text: a number as an argument would be taken for a key.
    names = [f"task-{i}" for i in range(tasks)]
    graph = {names[0]: (echo, 0)}
    for i in range(1, tasks):
        graph[names[i]] = (echo, names[i - 1] if chain else i)
    keys = names[-1] if chain else names
    with dask.config.set(num_workers=2):
        get({"warm": (echo, 0)}, "warm")
        start = time.perf_counter()
        get(graph, keys)
        return time.perf_counter() - start


if __name__ == "__main__":
    kind, tasks = sys.argv[1], int(sys.argv[2])
    chain = kind.startswith("chain-")
    print((with_distributed if kind.endswith("distributed") else with_threads)(tasks, chain))
