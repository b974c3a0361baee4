package server

import (
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// schedules holds the handlers of the schedules of containers.
type schedules struct {
	store    *store.Store
	settings Settings
	archives Archives
}

type schedulesBody struct {
	Schedules []v1.ScheduleView `json:"schedules"`
}

// schedule returns the container and the name of the schedule that the path of a request names.
func (c *call) schedule() (container, name string, err error) {
	container, err = c.containerID()
	return container, c.Params("schedule"), err
}

func (s schedules) check(c *call, r *v1.ScheduleView) error {
	container, name, err := c.schedule()
	if err != nil {
		return err
	}
	policy := intent.SchedulePolicy{Backups: s.settings.Current().Backups, Has: s.archives.Has}
	intent.CheckSchedule(&c.fieldErrors, policy, container, name, &r.ScheduleSpec)
	return nil
}

// put replaces a schedule as a whole.
func (s schedules) put(c *call, r v1.ScheduleView) (v1.ScheduleView, error) {
	if err := intent.PutSchedule(c.writer(s.store), r.ScheduleSpec); err != nil {
		return r, err
	}
	return s.get(c)
}

func (s schedules) get(c *call) (view v1.ScheduleView, err error) {
	container, name, err := c.schedule()
	if err != nil {
		return view, err
	}
	tx := s.store.Read()
	if _, err := intent.FindContainer(tx, container); err != nil {
		return view, err
	}
	o, err := intent.FindSchedule(tx, container, name)
	return v1.ViewOfSchedule(o), err
}

// list answers with the schedules of a container, sorted by name.
func (s schedules) list(c *call) (schedulesBody, error) {
	body := schedulesBody{[]v1.ScheduleView{}}
	o, err := c.findContainer(s.store)
	if err != nil {
		return body, err
	}
	for _, schedule := range store.Schedules.ListBy(s.store.Read(), o.Meta.ID) {
		body.Schedules = append(body.Schedules, v1.ViewOfSchedule(schedule))
	}
	return body, nil
}

func (s schedules) delete(c *call) (messageBody, error) {
	container, name, err := c.schedule()
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Schedule deleted successfully"}, intent.DeleteSchedule(c.writer(s.store), container, name)
}

func (s schedules) run(c *call) (messageBody, error) {
	container, name, err := c.schedule()
	if err != nil {
		return messageBody{}, err
	}
	answer := messageBody{"Schedule run requested"}
	return answer, intent.RunSchedule(c.promise(s.store, func(string) any { return answer }), container, name)
}
