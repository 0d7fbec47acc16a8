// Package task has the commands of agent task: work in beads that commands verify.
package task
