package server

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

//go:embed demo/*.json
var demoFiles embed.FS

// LoadDemo adds sample data, each part through its API. An API that is off gets none.
//
//   - database shop: products and orders through NoSQL, customers through Mongo; both APIs see all three;
//   - table devicelog: readings of three devices;
//   - graph graphs/g: airports, flights, cities and roads.
func (s *Server) LoadDemo(ctx context.Context) error {
	for _, part := range []struct {
		api  string
		load func(context.Context) error
	}{{NoSQL, s.demoShop}, {Mongo, s.demoCustomers}, {Table, s.demoDevices}, {Gremlin, s.demoGraph}} {
		if s.Addr(part.api) == "" {
			continue
		}
		if err := part.load(ctx); err != nil {
			return fmt.Errorf("sample data for %s: %w", part.api, err)
		}
	}
	s.demo = true
	return nil
}

func demoFile(name string, into any) error {
	raw, err := demoFiles.ReadFile("demo/" + name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (s *Server) demoShop(ctx context.Context) error {
	if err := s.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"shop"}`)); err != nil {
		return err
	}
	for _, c := range []struct{ id, key string }{{"products", "category"}, {"orders", "customer"}} {
		spec := fmt.Appendf(nil, `{"id":%q,"partitionKey":{"paths":["/%s"],"kind":"Hash","version":2}}`, c.id, c.key)
		if err := s.nosql(ctx, http.MethodPost, "colls", "dbs/shop", nil, spec); err != nil {
			return err
		}
		var items []json.RawMessage
		if err := demoFile(c.id+".json", &items); err != nil {
			return err
		}
		for _, item := range items {
			var fields map[string]any
			if err := json.Unmarshal(item, &fields); err != nil {
				return err
			}
			key, err := json.Marshal([]any{fields[c.key]})
			if err != nil {
				return err
			}
			header := map[string]string{"x-ms-documentdb-partitionkey": string(key)}
			if err := s.nosql(ctx, http.MethodPost, "docs", "dbs/shop/colls/"+c.id, header, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) demoCustomers(ctx context.Context) error {
	c, err := s.dialMongo(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := demoFiles.ReadFile("demo/customers.json")
	if err != nil {
		return err
	}
	_, err = c.run(fmt.Sprintf(`{"insert":"customers","documents":%s,"$db":"shop"}`, raw))
	return err
}

// demoDevices writes a reading of three devices for each hour of two days. Row keys count down, so the newest reading
// comes first.
func (s *Server) demoDevices(ctx context.Context) error {
	if err := s.table(ctx, http.MethodPost, "/Tables", []byte(`{"TableName":"devicelog"}`)); err != nil {
		return err
	}
	first := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for d, device := range []string{"boiler", "freezer", "greenhouse"} {
		base := []float64{62, -18.5, 24}[d]
		for h := range 48 {
			at := first.Add(time.Duration(h) * time.Hour)
			swing := float64((h*7+d*5)%12) / 4
			entity := fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":"%010d","At":%q,"At@odata.type":"Edm.DateTime",`+
				`"Celsius":%.2f,"Celsius@odata.type":"Edm.Double","Pulses":"%d","Pulses@odata.type":"Edm.Int64",`+
				`"Alarm":%t,"Note":%q}`,
				device, 1_000_000-h, at.Format("2006-01-02T15:04:05Z"), base+swing, int64(h)*86_400_000, swing > 2.5,
				"hour "+at.Format("15"))
			if err := s.table(ctx, http.MethodPost, "/devicelog", entity); err != nil {
				return err
			}
		}
	}
	return nil
}

// demoGraph writes vertices, then edges, several in each script.
func (s *Server) demoGraph(ctx context.Context) error {
	var g struct {
		Airports []struct {
			Code, Name, City, Country string
			Runways                   int
		}
		Routes []struct {
			From, To string
			Km       int
		}
		Roads []struct {
			Name, From, To string
			Km             int
		}
	}
	if err := demoFile("graph.json", &g); err != nil {
		return err
	}
	c, err := s.dialGremlin(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	run := func(script string, bindings map[string]any) {
		err = errors.Join(err, c.eval("graphs/g", script, bindings))
	}
	cities := map[string]bool{}
	city := func(name string) {
		if !cities[name] {
			cities[name] = true
			run("g.addV('city').property(id, i).property('name', n)", map[string]any{"i": cityID(name), "n": name})
		}
	}
	for _, a := range g.Airports {
		city(a.City)
		run("g.addV('airport').property(id, c).property('name', n).property('country', l).property('runways', r)",
			map[string]any{"c": a.Code, "n": a.Name, "l": a.Country, "r": a.Runways})
		run("g.V(c).addE('serves').to(__.V(i))", map[string]any{"c": a.Code, "i": cityID(a.City)})
	}
	for _, r := range g.Routes {
		run("g.V(a).addE('flight').to(__.V(b)).property('km', k)", map[string]any{"a": r.From, "b": r.To, "k": r.Km})
	}
	for _, r := range g.Roads {
		city(r.From)
		city(r.To)
		run("g.V(a).addE('road').to(__.V(b)).property('name', n).property('km', k)",
			map[string]any{"a": cityID(r.From), "b": cityID(r.To), "n": r.Name, "k": r.Km})
	}
	return err
}

func cityID(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// demoHints says what the sample data are, and has a query to paste for each language. program is how the shell of the
// user calls this program.
func (s *Server) demoHints(w io.Writer, program string, c Connections) error {
	std := Default()
	at := func(api, standard, flag, address string) string {
		if s.Addr(api) == standard {
			return ""
		}
		return " " + flag + " " + address
	}
	var rows []string
	if c.NoSQL != nil {
		rows = append(rows, "databases shop (products, orders, customers) and graphs (g), table devicelog. To paste:",
			program+" shell"+at(NoSQL, std.NoSQLAddr, "--endpoint", c.NoSQL.Endpoint)+" --db shop --container products"+
				` --eval "SELECT c.name, c.price FROM c WHERE c.price > 100"`)
	}
	if c.Mongo != nil {
		rows = append(rows, program+" shell --lang mongo"+at(Mongo, std.MongoAddr, "--mongo-endpoint", s.dial(Mongo))+
			` --db shop --eval "db.customers.find({ city: 'London' })"`)
	}
	if c.Gremlin != nil {
		rows = append(rows, program+" shell --lang gremlin"+
			at(Gremlin, std.GremlinAddr, "--gremlin-endpoint", c.Gremlin.Endpoint)+
			` --eval "g.V('SEA').out('flight').values('name')"`)
	}
	if c.Table != nil && c.Admin != nil && c.Admin.Page != "" {
		rows = append(rows, c.Admin.Page+"#/c/TablesDB/devicelog/query?lang=odata&q=Celsius+gt+64")
	}
	for i, r := range rows {
		name := ""
		if i == 0 {
			name = "Sample"
		}
		if _, err := fmt.Fprintf(w, "  %-7s  %s\n", name, r); err != nil {
			return err
		}
	}
	return nil
}
