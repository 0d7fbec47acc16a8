package event

// TaskStart begins a task, work in beads that commands verify, and describes it. It
// comes again when a resume changes the limits.
type TaskStart struct {
	Task        string          `json:"task"` // its ID
	Description string          `json:"description"`
	Workspace   string          `json:"workspace"`
	Criteria    []TaskCriterion `json:"criteria"`
	Steps       []TaskStep      `json:"steps,omitempty"`       // of a plan
	TokenBudget int             `json:"tokenBudget,omitempty"` // 0 = none
	MaxBeads    int             `json:"maxBeads"`
	Rounds      int             `json:"roundsPerBead"`
	TestChange  string          `json:"onTestChange"`        // ask, fail or allow
	Rollback    bool            `json:"rollback,omitempty"`  // take back what a failed bead did
	Worktrees   int             `json:"worktrees,omitempty"` // beads that may work at once
	Base        string          `json:"base"`                // snapshot of the beginning
	// Sealed are the files that decide what the criteria's commands do, and hashes of
	// their content.
	Sealed map[string]string `json:"sealed,omitempty"`
}

// TaskCriterion is a criterion of a task.
type TaskCriterion struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // tests-pass, lint-pass, command, file-exists, file-contains, done-marker
	Command string `json:"command,omitempty"`
	Path    string `json:"path,omitempty"`
	Text    string `json:"text,omitempty"` // that the file contains
}

// TaskStep is a step of a task's plan.
type TaskStep struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Needs    []string        `json:"needs,omitempty"`    // names of steps
	Files    []string        `json:"files,omitempty"`    // that it is expected to change
	Criteria []TaskCriterion `json:"criteria,omitempty"` // besides those of the task
	Issue    string          `json:"issue,omitempty"`    // of a tracker, in JSON, that the step was made of
}

// TaskState says that a task, or one of its beads, is in a new state.
type TaskState struct {
	Task     string      `json:"task"`
	Bead     int         `json:"bead,omitempty"` // 0 = the task itself
	State    string      `json:"state"`
	Reason   string      `json:"reason,omitempty"`
	Result   *BeadResult `json:"result,omitempty"`   // of a bead that is merged or verified
	Snapshot string      `json:"snapshot,omitempty"` // of what is merged or verified, or of a worktree's beginning
	Before   string      `json:"before,omitempty"`   // snapshot of the workspace before a merge
}

// BeadResult is what came of the session of a bead.
type BeadResult struct {
	Success  bool         `json:"success"` // the model ended it; it was not cut off
	Files    []FileChange `json:"filesChanged"`
	Left     int          `json:"left,omitempty"` // number of files not listed
	Errors   []string     `json:"errors,omitempty"`
	Used     int          `json:"tokensUsed"`
	CostUSD  float64      `json:"costUsd,omitempty"` // as far as prices are known
	Rounds   int          `json:"rounds"`
	Response string       `json:"response"`
	Done     bool         `json:"isDone"`          // the last line of the response is DONE
	Spent    bool         `json:"spent,omitempty"` // its tokens are used up
}

// BeadStart begins a bead: one attempt at a task or a step, in its own session.
type BeadStart struct {
	Task      string `json:"task"`
	Bead      int    `json:"bead"` // from 1
	Max       int    `json:"maxBeads"`
	Step      string `json:"step,omitempty"`
	Child     string `json:"child"`               // its session
	Before    string `json:"before"`              // snapshot
	Worktree  string `json:"worktree,omitempty"`  // where it works, beside others
	Allowance int    `json:"allowance,omitempty"` // tokens that it may use
	Finishing bool   `json:"finishing,omitempty"` // the last one that the budget allows
}

// BeadEnd ends a bead.
type BeadEnd struct {
	Task        string     `json:"task"`
	Bead        int        `json:"bead"`
	State       string     `json:"state"` // committed, retrying, blocked or exhausted
	Reason      string     `json:"reason,omitempty"`
	Complete    bool       `json:"complete,omitempty"` // all criteria of the task are met
	Result      BeadResult `json:"result"`
	Failures    []string   `json:"failures,omitempty"`    // of criteria, for the next bead
	Fingerprint string     `json:"fingerprint,omitempty"` // of the failures
	RolledBack  bool       `json:"rolledBack,omitempty"`  // its changes were taken back
	Conflicts   []string   `json:"conflicts,omitempty"`   // of its worktree with the workspace: nothing was merged
	After       string     `json:"after"`                 // snapshot
	DurationMS  int64      `json:"durationMs"`
}

// Criterion is the result of one criterion.
type Criterion struct {
	Task       string `json:"task"`
	Bead       int    `json:"bead"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Command    string `json:"command,omitempty"`
	Status     string `json:"status"` // pass, fail, error or not-run
	ExitCode   int    `json:"exitCode"`
	DurationMS int64  `json:"durationMs"`
	Output     string `json:"output,omitempty"` // its end
}

// Guard says that tests, or what the criteria run, were changed.
type Guard struct {
	Task   string `json:"task"`
	Bead   int    `json:"bead"`
	Kind   string `json:"kind"` // test-changed, test-removed, test-skipped or criteria-changed
	Path   string `json:"path"`
	Detail string `json:"detail,omitempty"`
	Action string `json:"action"` // ask, fail or allow
}

// Budget says what a task has used, after each model call.
type Budget struct {
	Task    string  `json:"task"`
	Bead    int     `json:"bead"`
	Used    int     `json:"used"`
	Max     int     `json:"max,omitempty"` // 0 = no limit
	CostUSD float64 `json:"costUsd,omitempty"`
	Warning int     `json:"warning,omitempty"` // percentage that it passed: 50, 75 or 90
}
