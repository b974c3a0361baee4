package server

import (
	"slices"
	"strings"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

var errPullsDisabled = v1.Errorf(v1.PullsDisabled, "Downloads are switched off: set files.pull to true in the configuration")

// pulls holds the handlers of downloads into volumes.
type pulls struct {
	store    *store.Store
	settings auth.Settings
}

type newPullBody struct {
	Message string `json:"message"`
	PullID  string `json:"pull_id"`
}

type pullsBody struct {
	Pulls []v1.PullView `json:"pulls"`
}

// enabled refuses a request before its body is read while downloads are switched off.
func (s pulls) enabled(e endpoint) endpoint {
	handle := e.handle
	e.handle = func(c *call) error {
		if !s.settings.Current().Files.Pull {
			return errPullsDisabled
		}
		return handle(c)
	}
	return e
}

func (s pulls) check(c *call, r *v1.PullRequest) error {
	c.nameFile(r.Path)
	if !c.fieldErrors.Any() {
		intent.CheckPull(&c.fieldErrors, *r, s.settings.Current().Files)
	}
	return nil
}

func (s pulls) create(c *call, r v1.PullRequest) (newPullBody, error) {
	if strings.HasSuffix(r.Path, "/") {
		r.Path += r.FileName()
	}
	if err := checkNewFile(r.Path); err != nil {
		return newPullBody{}, err
	}
	id, err := c.volumeID(s.store)
	if err != nil {
		return newPullBody{}, err
	}
	answer := func(pull string) newPullBody { return newPullBody{"Download started", pull} }
	request := c.promise(s.store, func(pull string) any { return answer(pull) })
	pull, err := intent.CreatePull(request, v1.PullSpec{VolumeID: id, PullRequest: r, Limited: c.caller.Restricted()})
	return answer(pull), err
}

// list answers with the downloads of a volume, the newest first.
func (s pulls) list(c *call) (pullsBody, error) {
	id, err := c.volumeID(s.store)
	if err != nil {
		return pullsBody{}, err
	}
	list := store.Pulls.ListBy(s.store.Read(), id)
	slices.SortFunc(list, v1.NewestFirst[v1.PullSpec, v1.PullStatus])
	body := pullsBody{make([]v1.PullView, len(list))}
	for i, p := range list {
		body.Pulls[i] = v1.ViewOfPull(p)
	}
	return body, nil
}

func (s pulls) cancel(c *call) (messageBody, error) {
	id, err := c.volumeID(s.store)
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Download cancelled"}, intent.CancelPull(c.writer(s.store), id, c.Params("pull"))
}
