package setup

import "github.com/seed-009c0928/agent/permissions"

// LapsingModes are the permission modes that a session opened again is not in unless
// the user chooses them again: they allow more than one expects of an old session.
func LapsingModes() []string {
	return []string{string(permissions.ModeWorkspace), string(permissions.ModeBypass)}
}
