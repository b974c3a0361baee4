package server

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// transfers holds the handlers of transfers to other nodes.
type transfers struct {
	store    *store.Store
	settings Settings
	own      func(netip.Addr) bool // see Deps.OwnAddress
}

type newTransferBody struct {
	Message    string `json:"message"`
	TransferID string `json:"transfer_id"`
}

type transfersBody struct {
	Transfers []v1.TransferView `json:"transfers"`
}

// transfer returns the transfer that the path of a request names.
func (s transfers) transfer(c *call) (v1.Transfer, error) {
	return intent.FindTransfer(s.store.Read(), c.Params("transfer"))
}

func (s transfers) check(c *call, r *v1.TransferRequest) error {
	intent.CheckTransfer(&c.fieldErrors, r)
	if s.isHere(r.URL) {
		c.fieldErrors.Add("url", "must be that of another daemon: this is the node itself")
	}
	return nil
}

// isHere reports whether a URL has a literal address and the port of this daemon. Names are not resolved:
// intent.PutArrival refuses a transfer of its own node.
func (s transfers) isHere(address string) bool {
	listens := s.settings.Current().Server
	u, err := url.Parse(address)
	if err != nil || u.Port() != strconv.Itoa(listens.Port) {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return false
	}
	if at, err := netip.ParseAddr(listens.Host); err == nil && !at.IsUnspecified() { // another one may listen at another address
		return a == at
	}
	return a.IsLoopback() || s.own != nil && s.own(a)
}

func (s transfers) create(c *call, r v1.TransferRequest) (newTransferBody, error) {
	container, err := c.containerID()
	if err != nil {
		return newTransferBody{}, err
	}
	answer := newTransferBody{"Transfer started", intent.NewID()}
	return answer, intent.CreateTransfer(c.promise(s.store, func(string) any { return answer }), answer.TransferID, container, r)
}

func (s transfers) get(c *call) (v1.TransferView, error) {
	o, err := s.transfer(c)
	return v1.ViewOfTransfer(o), err
}

// list answers with all transfers, the newest first.
func (s transfers) list(*call) (transfersBody, error) {
	all := store.Transfers.List(s.store.Read())
	slices.SortFunc(all, v1.NewestFirst[v1.TransferSpec, v1.TransferStatus])
	body := transfersBody{[]v1.TransferView{}}
	for _, o := range all {
		body.Transfers = append(body.Transfers, v1.ViewOfTransfer(o))
	}
	return body, nil
}

// cancelWait bounds how long a request waits until the destination has answered.
const cancelWait = 20 * time.Second

// unanswered is the refusal to give a container back while nobody knows whether the destination runs it.
var unanswered = v1.Errorf(v1.Transferring,
	"The destination has not answered, and may run the container: the transfer goes on as soon as it answers. "+
		"If it is gone for ever and will never run the container, add ?destination_is_gone=true")

// cancel ends a transfer, and waits for its end.
func (s transfers) cancel(c *call) (v1.TransferView, error) {
	gone, err := edge.QueryBool(c.Ctx, "destination_is_gone")
	if err != nil {
		return v1.TransferView{}, err
	}
	id, cancelWith := c.Params("transfer"), intent.CancelTransfer
	if gone {
		cancelWith = intent.AbandonTransfer
	}
	if err := cancelWith(c.writer(s.store), id); err != nil {
		return v1.TransferView{}, err
	}
	ctx, end := c.bounded(cancelWait)
	defer end()
	o, err := store.Transfers.Await(ctx, s.store, id, func(o v1.Transfer) bool {
		return v1.TransferStateOf(o).Finished() || o.Status.Unanswered == o.Spec.Cancels
	})
	if errors.Is(err, context.DeadlineExceeded) || err == nil && !v1.TransferStateOf(o).Finished() {
		return v1.TransferView{}, unanswered
	}
	return v1.ViewOfTransfer(o), err
}
