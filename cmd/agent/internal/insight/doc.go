// Package insight adds up what session logs say: time, tokens and cost by model,
// project, tool and skill, what is slow or fails, and which permissions are asked for.
package insight
