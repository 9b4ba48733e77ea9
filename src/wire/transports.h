/* transports.h -- the transports that there are, in the order of messages.
 *
 * A row: NAME, for which a file of this room defines hd_transport_NAME (wire/transport.h). Adding a transport
 * is such a file and a row. `sim`, which joins hubs of one process, is no row: no option names it. */
#ifndef HD_WIRE_TRANSPORTS_H
#define HD_WIRE_TRANSPORTS_H

#define HD_TRANSPORT_ROWS(FIRST, NEXT) \
	FIRST(shm) \
	NEXT(unix) \
	NEXT(tcp) \
	NEXT(tls)

/* "shm|unix|..": the words of an option. */
#define HD_TRANSPORT_FIRST(name) #name
#define HD_TRANSPORT_NEXT(name) "|" #name
#define HD_TRANSPORT_WORDS HD_TRANSPORT_ROWS(HD_TRANSPORT_FIRST, HD_TRANSPORT_NEXT)

#endif
