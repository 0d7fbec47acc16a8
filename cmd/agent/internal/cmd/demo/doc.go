// Package demo is the command agent demo: a scripted model fixes a failing test
// in a temporary workspace, with the real loop, tools, policy and sandbox.
package demo
