package event

import "slices"

// Parked is the questions that a session is parked with, as its log tells them: the end
// of a run leaves them, an answer closes one, and a new input closes all. The zero value
// is that of a new session.
type Parked []Question

// Add takes the next event of the log. It changes no slice that was read from p before.
func (p *Parked) Add(b Body) {
	switch b := b.(type) {
	case Result:
		*p = b.Questions
	case Answer:
		*p = slices.DeleteFunc(slices.Clone(*p), func(q Question) bool { return q.QID == b.QID })
	case User:
		*p = nil
	}
}

// ParkedBy reports whether events of a type can change what a session is parked with.
func ParkedBy(kind string) bool {
	switch kind {
	case Result{}.Type(), Answer{}.Type(), User{}.Type():
		return true
	}
	return false
}
