// Package transfer moves containers to other nodes, and receives them from there.
//
// The source does all the talking. Its transfer has a state that is recorded before the source acts on it, so that berth
// may end at any time. From stopping on the transfer has reserved the volume, as a restore does: nothing runs with it.
// Once handing_over is recorded, only an answer of the destination ends the reservation: committed, and the
// container is deleted here, or cancelled. The destination gives the same answer for ever, so that at no time
// both nodes run the container.
//
// The package knows neither HTTP nor files: cmd gives it a client and the volumes.
package transfer
