/* absent.h -- keys and words of the job file that this build knows and does not
 * honour: A(table, key, word). Key NULL: the whole table; word NULL: the key.
 * Not a header of its own: no guard, no declarations.
 *
 * What asks for something that would not happen is refused, with another sentence than a
 * typing error. A capability that lands deletes its rows here and adds its keys in
 * keys.h. */
A("job", "priority", NULL)          A("job", "deadline", NULL)
A("job", "reduction", "fast")       A("job", "reduction", "exact")
A("data", "kind", "tar")
A("data", "index", NULL)            A("data", "reader", NULL)
A("optim", "update", "custom")
A("workers", "profile", NULL)       A("checkpoint", "shard", NULL)
A("trace", "record", NULL)          A("trace", "formats", NULL)
A("comm", "sync", "parameter-server")
A("launch", "kind", "k8s")          A("launch", "kind", "mpi")
A("launch", "k8s", NULL)            A("launch", "mpi", NULL)
A("launch", "slurm.pilot", NULL)    A("cluster", NULL, NULL)
A("net", "tls", NULL)
