package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	doors "github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/formats"
)

func init() { // here, and not in the table, because the readers refer to nothing of it
	for _, kind := range []string{".graphson", ".graphml"} {
		initFiles[kind] = initGraph
	}
}

// initGraph writes the elements of a graph, as `orrery import` does.
func initGraph(ctx context.Context, s *Server, name, file string) (n int, err error) {
	db, graph, err := initTarget(name)
	if err != nil {
		return 0, err
	}
	if s.Addr(Mongo) == "" {
		return 0, errors.New("the MongoDB API is off, by which the elements of graphs are written")
	}
	in, err := transfer.OpenInput(file, nil)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	format, err := formats.Of(in)
	if err != nil {
		return 0, err
	}
	reader, err := formats.Open(in, format, &formats.Options{Door: format.Door, Types: true})
	if err != nil {
		return 0, err
	}
	user, password := s.cfg.mongoLogin()
	srv := &doors.Server{Mongo: s.Addr(Mongo), Account: user, Key: password}
	target, err := doors.OpenGraph(ctx, srv, db, graph, nil)
	if err != nil {
		return 0, errors.Join(err, reader.Close())
	}
	open := func(context.Context, string) (transfer.Target, error) { return target, nil }
	im := &transfer.Import{Workers: 1, Open: open}
	report, err := im.Run(ctx, reader)
	err = errors.Join(err, reader.Close(), target.Close())
	if err == nil && report.Bad > 0 {
		err = fmt.Errorf("%d elements can't be written", report.Bad)
	}
	return int(report.Written), err
}
