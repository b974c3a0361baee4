package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// policies holds the handlers for backup policies.
type policies struct {
	store    *store.Store
	settings Settings
	decoder  decoder
	archives Archives // nil: unavailable
}

// put replaces the backup policy of a volume as a whole.
func (s policies) put(c *fiber.Ctx) error {
	var body struct {
		Every   v1.Duration  `json:"every" api:"required"`
		Keep    int          `json:"keep" api:"required"`
		Target  v1.Target    `json:"target"`
		Ignore  []string     `json:"ignore"`
		Quiesce *quiesceBody `json:"quiesce"`

		VolumeID  any `json:"volume_id" api:"readonly"`
		NextRunAt any `json:"next_run_at" api:"readonly"`
		Message   any `json:"message" api:"readonly"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	spec := v1.PolicySpec{Every: body.Every, Keep: body.Keep, Target: body.Target, Ignore: body.Ignore, Quiesce: body.Quiesce.spec()}
	volume, err := admit(c, s.store, spec.Quiesce, func() error {
		if least := limit.Jobs().Every; callerOf(c).Restricted() && time.Duration(spec.Every) < least {
			f.Add("every", "must be at least %s with a token that is limited to containers", least)
		}
		intent.CheckPolicy(&f, &spec, s.settings.Current().Backups, hasS3(s.archives))
		return f.Err()
	})
	if err != nil {
		return err
	}
	if err := intent.PutPolicy(requestOf(c, s.store), volume, spec); err != nil {
		return err
	}
	return s.get(c)
}

func (s policies) get(c *fiber.Ctx) error {
	var view policyView
	err := s.store.View(func(tx *store.Tx) error {
		v, _, err := findVolume(c, tx)
		if err != nil {
			return err
		}
		p, err := intent.FindPolicy(tx, v.Meta.ID)
		view = viewOfPolicy(p)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, view)
}

func (s policies) delete(c *fiber.Ctx) error {
	volume, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	if err := intent.DeletePolicy(requestOf(c, s.store), volume); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Backup policy deleted successfully"})
}

// policyView is the answer about a policy.
type policyView struct {
	VolumeID  string       `json:"volume_id"`
	Every     v1.Duration  `json:"every"`
	Keep      int          `json:"keep"`
	Target    v1.Target    `json:"target"`
	Ignore    []string     `json:"ignore"`
	Quiesce   *quiesceBody `json:"quiesce"`
	NextRunAt *time.Time   `json:"next_run_at"`
	Message   string       `json:"message"`
}

func viewOfPolicy(p v1.BackupPolicy) policyView {
	v := policyView{VolumeID: p.Meta.ID, Every: p.Spec.Every, Keep: p.Spec.Keep, Target: p.Spec.Target, Ignore: p.Spec.Ignore,
		Quiesce: quiesceOf(p.Spec.Quiesce), NextRunAt: p.Status.NextRunAt, Message: p.Status.Message}
	if v.Ignore == nil {
		v.Ignore = []string{}
	}
	return v
}
