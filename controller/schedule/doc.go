// Package schedule runs the schedules of containers. Nothing ticks: the loop is queued for the next due
// time, and for the changes of containers and backups that a schedule waits for.
//
// A run is a part of the schedule's status. Each step is recorded before it acts: the request of a step, such as a
// restart, is in the commit that records the step's number, and a line is sent to the console after it. So berth may end
// at any time: no step is repeated, and none is lost but a line that was recorded and not sent.
//
// The package knows neither what a request of a step does nor the engine: cmd gives it the functions of the API.
package schedule
