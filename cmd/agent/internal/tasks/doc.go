// Package tasks equips tasks with what the settings say: the graph of the workspace,
// and a second opinion. It is shared by agent task and the interactive session.
package tasks
