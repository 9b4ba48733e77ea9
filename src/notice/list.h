/* list.h -- the sources of notices; included with X defined: X(id of hd_notice_of_<id>).
 * Not a header of its own: no guard, no declarations.
 *
 * `auto` asks the clouds in this order; of the sources by signal the first that is here counts. */
X(hand)
X(slurm)
X(kubernetes)
X(signal)
X(ec2)
X(ec2_rebalance)
X(gce)
X(gce_maintenance)
X(azure)
