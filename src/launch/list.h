/* list.h -- the launchers; included with X defined: X(id of hd_launcher_of_<id>).
 * Not a header of its own: no guard, no declarations. */
X(local)
X(ssh)
X(slurm)
