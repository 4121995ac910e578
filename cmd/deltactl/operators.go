package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

const operatorsHelp = `

You are who the operating system says you are, and your groups are your roles.
Operators are listed in /etc/delta-agents/operators, or the file that --operators or
DELTA_OPERATORS names: one name or role:GROUP a line, # begins a comment. It counts
only where it belongs to root and nobody else can write it: a list that you can change
yourself says nothing about you. 'deltactl whoami' says who you are and why.`

// defaultOperators is where the list of operators is, where nobody says otherwise.
const defaultOperators = "/etc/delta-agents/operators"

// maxOperators bounds what is read of a list, in bytes.
const maxOperators = 1 << 16

// office is who runs the program and who operates.
type office struct {
	file      string
	operators []string
	fault     error // why the list does not count
}

// readOffice reads the list of operators. Where it is missing there are none, which is a fault only where it was named.
func readOffice(named string) office {
	o := office{file: named}
	if o.file == "" {
		o.file = os.Getenv("DELTA_OPERATORS")
	}
	given := o.file != ""
	if !given {
		o.file = defaultOperators
	}
	o.operators, o.fault = readOperators(o.file)
	if !given && errors.Is(o.fault, fs.ErrNotExist) {
		o.fault = nil
	}
	return o
}

func readOperators(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of what was opened: nobody can put another in its place
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", path)
	}
	if err := trusted(info); err != nil {
		return nil, fmt.Errorf("%s does not count: %w", path, err)
	}
	return parseOperators(io.LimitReader(f, maxOperators), path)
}

func parseOperators(r io.Reader, path string) (list []string, err error) {
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		line, _, _ := strings.Cut(in.Text(), "#")
		name := strings.TrimSpace(line)
		if name == "" {
			continue
		}
		if err := approval.CheckList("operators", []string{name}); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if name == approval.Anybody {
			return nil, fmt.Errorf("%s:%d: %q would be everybody; name people, or a group", path, n, name)
		}
		list = append(list, name)
	}
	return list, in.Err()
}

// hint says beside a refusal what would have to be otherwise.
func (o office) hint() string {
	switch {
	case o.fault != nil:
		return fmt.Sprintf("the list of operators does not count: %v", o.fault)
	case len(o.operators) == 0:
		return fmt.Sprintf("no operators are listed: root can, in %s", o.file)
	case len(o.operators) > 5:
		return fmt.Sprintf("operators stand in %s: %s and %d more", o.file, strings.Join(o.operators[:5], ", "), len(o.operators)-5)
	}
	return fmt.Sprintf("operators stand in %s: %s", o.file, strings.Join(o.operators, ", "))
}

// explain adds the hint to an error that says that somebody is not among those who may.
func (o office) explain(err error) error {
	if errors.Is(err, approval.ErrNotApprover) {
		return fmt.Errorf("%w; %s", err, o.hint())
	}
	return err
}

// osUser vouches for whoever runs the program, and for the groups that they are in.
func osUser(context.Context, any) (delta.Vouched, error) {
	u, err := user.Current()
	if err != nil {
		return delta.Vouched{}, fmt.Errorf("the operating system does not say who you are: %w", err)
	}
	return delta.Vouched{Name: u.Username, Roles: groupsOf(u)}, nil
}

// mostRoles is how many roles an engine takes of anybody.
const mostRoles = 64

// groupsOf names the groups of a user that can be roles, in order; what the system does not name is none.
func groupsOf(u *user.User) (names []string) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil && action.CheckName(g.Name) == nil {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(mostRoles, len(names))]
}
