package core

import "github.com/seed-009c0928/agent/core/internal/wording"

// String describes the access in words, such as "run `make`".
func (a Access) String() string { return a.worded().String() }

func (a Access) worded() wording.Access {
	return wording.Access{Scope: string(a.Scope), Resource: a.Resource, Recursive: a.Recursive, Inside: a.Inside, Unconfined: a.Unconfined}
}

// question asks for approval of a call.
func question(tool string, accesses []Access) string {
	all := make([]wording.Access, len(accesses))
	for i, a := range accesses {
		all[i] = a.worded()
	}
	return wording.Question(tool, all)
}
