// Accounts, databases, containers, throughput, users and permissions.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using static Check;

public static class Resources
{
    public static async Task Run(CosmosClient client, Database db)
    {
        await Test("the account has a region", async () =>
        {
            AccountProperties account = await client.ReadAccountAsync();
            True(account.ReadableRegions.Any(), "a readable region");
        });
        await Test("databases", async () =>
        {
            Equal((await client.CreateDatabaseIfNotExistsAsync(db.Id)).StatusCode, HttpStatusCode.OK);
            await Refused(HttpStatusCode.Conflict, () => client.CreateDatabaseAsync(db.Id));
            await Refused(HttpStatusCode.NotFound, () => client.GetDatabase("no" + db.Id).ReadAsync());
            var query = new QueryDefinition("SELECT * FROM c WHERE c.id = @id").WithParameter("@id", db.Id);
            Equal((await All(client.GetDatabaseQueryIterator<DatabaseProperties>(query))).Count, 1);
        });
        await Test("containers", async () =>
        {
            var properties = new ContainerProperties("plain", "/pk") { DefaultTimeToLive = 100 };
            properties.UniqueKeyPolicy.UniqueKeys.Add(new UniqueKey { Paths = { "/u" } });
            ContainerResponse made = await db.CreateContainerIfNotExistsAsync(properties);
            Equal(made.StatusCode, HttpStatusCode.Created);
            Equal(made.Resource.PartitionKeyPath, "/pk");
            Equal((await db.CreateContainerIfNotExistsAsync(properties)).StatusCode, HttpStatusCode.OK);
            properties = (await made.Container.ReadContainerAsync()).Resource;
            properties.IndexingPolicy.ExcludedPaths.Add(new ExcludedPath { Path = "/hidden/*" });
            made = await made.Container.ReplaceContainerAsync(properties);
            True(made.Resource.IndexingPolicy.ExcludedPaths.Any(p => p.Path == "/hidden/*"), "the path is excluded");
            await made.Container.DeleteContainerAsync();
            await Refused(HttpStatusCode.NotFound, () => made.Container.ReadContainerAsync());
        });
        await Test("a container by the fluent interface", async () =>
        {
            Container made = await db.DefineContainer("fluent", "/pk")
                .WithIndexingPolicy().WithIncludedPaths().Path("/a/?").Attach().WithExcludedPaths().Path("/*").Attach()
                .WithSpatialIndex().Path("/g/*", SpatialType.Point).Attach().Attach().CreateAsync();
            ContainerProperties read = await made.ReadContainerAsync();
            Equal(read.IndexingPolicy.SpatialIndexes[0].Path, "/g/*");
            await made.DeleteContainerAsync();
        });
        await Test("throughput", async () =>
        {
            Container made = await db.CreateContainerAsync("priced", "/pk", 400);
            Equal(await made.ReadThroughputAsync(), 400);
            Equal((await made.ReplaceThroughputAsync(600)).Resource.Throughput, 600);
            True((await made.ReadThroughputAsync(new RequestOptions())).MinThroughput > 0, "there is a least value");
            await Refused(HttpStatusCode.BadRequest, () => made.ReplaceThroughputAsync(50));
            await made.DeleteContainerAsync();
            made = await db.CreateContainerAsync(new ContainerProperties("scaled", "/pk"),
                ThroughputProperties.CreateAutoscaleThroughput(4000));
            Equal((await made.ReadThroughputAsync(new RequestOptions())).Resource.AutoscaleMaxThroughput, 4000);
            await made.DeleteContainerAsync();
        });
        await Test("a permission's token reads and doesn't write", async () =>
        {
            Container books = await Books(db, "lent", 1);
            User user = await db.CreateUserAsync("ann");
            PermissionProperties permission =
                await user.CreatePermissionAsync(new PermissionProperties("p", PermissionMode.Read, books));
            using (CosmosClient reader = Connect(ConnectionMode.Gateway, permission.Token))
            {
                Container lent = reader.GetContainer(db.Id, books.Id);
                Equal((await lent.ReadItemAsync<Book>("b0", new PartitionKey("a0"))).Resource.id, "b0");
                await Refused(HttpStatusCode.Forbidden, () => lent.UpsertItemAsync(NewBook(0)));
            }
            await user.DeleteAsync();
            await books.DeleteContainerAsync();
        });
        await Test("direct mode, the client's default, is refused with a hint", async () =>
        {
            using (CosmosClient direct = Connect(ConnectionMode.Direct))
            {
                CosmosException e = await Refused(HttpStatusCode.Unauthorized,
                    () => direct.CreateDatabaseIfNotExistsAsync(db.Id));
                True(e.Message.Contains("ConnectionMode.Gateway"), e.Message);
            }
        });
    }
}
