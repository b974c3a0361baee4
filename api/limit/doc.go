// Package limit bounds what clients may use: every limit of the API and of SFTP is a
// Rate (how often) or Slots (how many at once), and limits.go has the numbers of all.
//
// A limit belongs to a tenant, not to a token: to the container of a token that is limited
// to containers, else to the first minted token in the line of parents. So a tenant gains
// nothing by more tokens, tickets or connections. The empty tenant is the administrator, who
// has the configured token: no limit of a tenant holds for him, and a tenth of each limit on
// all, at least 1, is kept for him.
//
// It must not know requests, tokens or stored objects.
package limit
