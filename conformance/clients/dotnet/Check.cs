// Tests of the NoSQL API through Microsoft.Azure.Cosmos, in gateway mode. They are compiled by mcs, so the language is
// C# 7. Each file has the tests of one subject.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;

public class Book
{
    public string id;
    public string author;
    public int year;
    public double price;
    public string[] tags;
    public Shelf shelf;
    public DateTime bought;
    public string _etag;
}

public class Shelf
{
    public string code;
    public int? row;
}

public class Any
{
    public string id, pk, tenant, user, author;
    public int v, n;
    public double mean;
    public bool stamped;
    public Shelf shelf;
}

public class Expiring
{
    public string id, author;
    public int ttl;
}

public static class Check
{
    static int passed, failed;

    static string endpoint, key;

    // Connect returns a client of the server.
    public static CosmosClient Connect(ConnectionMode mode = ConnectionMode.Gateway, string token = null,
        bool bulk = false)
    {
        return new CosmosClient(endpoint, token ?? key,
            new CosmosClientOptions { ConnectionMode = mode, AllowBulkExecution = bulk });
    }

    // The arguments are the endpoint and the key.
    public static int Main(string[] args)
    {
        endpoint = args[0];
        key = args[1];
        Run().GetAwaiter().GetResult();
        Console.WriteLine("dotnet: {0} passed, {1} failed", passed, failed);
        return failed == 0 ? 0 : 1;
    }

    static async Task Run()
    {
        using (CosmosClient client = Connect())
        {
            Database db = await client.CreateDatabaseIfNotExistsAsync("dotnet-" + Guid.NewGuid().ToString("N"));
            try
            {
                await Resources.Run(client, db);
                await Items.Run(db);
                await Queries.Run(db);
                await Batches.Run(db);
                await Feeds.Run(db);
                await Programs.Run(db);
            }
            finally
            {
                await db.DeleteAsync();
            }
        }
    }

    // Test runs a test for at most a minute.
    public static async Task Test(string name, Func<Task> test)
    {
        try
        {
            Task running = test();
            if (await Task.WhenAny(running, Task.Delay(60000)) != running) throw new Exception("no answer in a minute");
            await running;
            passed++;
            Console.WriteLine("ok   " + name);
        }
        catch (Exception e)
        {
            failed++;
            Console.WriteLine("FAIL " + name + ": " + e);
        }
    }

    public static void Equal(object got, object want)
    {
        if (!object.Equals(got, want)) throw new Exception("got " + got + ", want " + want);
    }

    public static void True(bool holds, string what)
    {
        if (!holds) throw new Exception("not so: " + what);
    }

    // Refused returns the error that a call must end with.
    public static async Task<CosmosException> Refused(HttpStatusCode want, Func<Task> call)
    {
        try
        {
            await call();
        }
        catch (CosmosException e)
        {
            if (e.StatusCode != want) throw;
            return e;
        }
        throw new Exception("it was done, want " + want);
    }

    public static async Task<List<T>> All<T>(FeedIterator<T> pages)
    {
        var all = new List<T>();
        while (pages.HasMoreResults)
        {
            FeedResponse<T> page = await pages.ReadNextAsync();
            if (page.StatusCode == HttpStatusCode.NotModified) break;
            all.AddRange(page);
        }
        return all;
    }

    public static Book NewBook(int i, string author = null)
    {
        return new Book
        {
            id = "b" + i, author = author ?? "a" + i % 5, year = 1900 + i, price = i * 1.25,
            tags = new[] { "t" + i % 3, "x" },
            shelf = new Shelf { code = "s" + i, row = i % 2 == 0 ? (int?)null : i },
            bought = new DateTime(2020, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddDays(i),
        };
    }

    // Books returns a new container with books of five authors.
    public static async Task<Container> Books(Database db, string name, int count)
    {
        var properties = new ContainerProperties(name, "/author") { DefaultTimeToLive = -1 };
        properties.IndexingPolicy.CompositeIndexes.Add(new System.Collections.ObjectModel.Collection<CompositePath> {
            new CompositePath { Path = "/author", Order = CompositePathSortOrder.Ascending },
            new CompositePath { Path = "/year", Order = CompositePathSortOrder.Descending } });
        Container books = await db.CreateContainerAsync(properties, 30000);
        await Task.WhenAll(Enumerable.Range(0, count).Select(i => books.CreateItemAsync(NewBook(i))));
        return books;
    }
}
