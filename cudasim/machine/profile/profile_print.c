/* A profile as text or as one line of JSON. */
#include "profile.h"
#include "rates.h"
#include "machine/core/statement.h"

#include <stdlib.h>

typedef unsigned long long number;

static const char *const place_names[PROFILE_PLACES] = { "global_read",    "global_written", "shared_read",
                                                         "shared_written", "local_read",     "local_written" };

static bool moves(const struct profile_traffic *t)
{
    uint64_t all = 0;
    for (int p = 0; p < PROFILE_PLACES; p++) all += t->bytes[p];
    return all != 0;
}

/* ---- text ---- */

static void print_kinds(FILE *file, const struct profile_summary *s)
{
    fprintf(file, "\ninstructions                                    warps          threads\n");
    for (uint32_t i = 0; i < s->kinds; i++)
        fprintf(file, "  %-40s %12llu %16llu\n", s->kind[i].name, (number)s->kind[i].warps, (number)s->kind[i].threads);
    fprintf(file, "  %-40s %12llu %16llu\n", "all", (number)s->warps, (number)s->threads);
}

static void print_bytes(FILE *file, const struct profile_summary *s)
{
    fprintf(file,
            "\nbytes                  global read     written  shared read     written   local read     written\n");
    for (int i = 0; i < TRAFFIC_COUNT; i++) {
        if (!moves(&s->traffic[i])) continue;
        fprintf(file, "  %-20s", s->traffic[i].name);
        for (int p = 0; p < PROFILE_PLACES; p++) fprintf(file, " %11llu", (number)s->traffic[i].bytes[p]);
        fputc('\n', file);
    }
}

static void print_products(FILE *file, const struct profile_summary *s)
{
    if (s->products == 0) return;
    fprintf(file, "\nmatrix products                                                  instructions       operations\n");
    for (uint32_t i = 0; i < s->products; i++)
        fprintf(file, "  %-60s %14llu %16llu\n", s->product[i].name, (number)s->product[i].instructions,
                (number)s->product[i].operations);
}

static void print_waits(FILE *file, const struct profile *profile, const struct grid *grid)
{
    bool any = false;
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *c = &profile->counts[i];
        if (c->waits == 0) continue;
        if (!any)
            fprintf(file, "\nwaits                  times        steps  (simulated steps, no time of a device)\n");
        any = true;
        char text[STATEMENT_BYTES];
        statement_text(grid->module, i, text, sizeof text);
        fprintf(file, "  line %5u %16llu %12llu  %s\n", grid->code[i].line, (number)c->waits, (number)c->waited, text);
    }
}

static void print_banks(FILE *file, const struct profile *profile, const struct profile_summary *s,
                        const struct grid *grid)
{
    if (s->ideal == 0) return;
    fprintf(file, "\nbanks of shared memory: %llu wavefronts, %llu without conflicts\n", (number)s->wavefronts,
            (number)s->ideal);
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *c = &profile->counts[i];
        if (c->wavefronts <= c->ideal) continue;
        char text[STATEMENT_BYTES];
        statement_text(grid->module, i, text, sizeof text);
        fprintf(file, "  line %5u %12llu for %12llu (%.2f times)  %s\n", grid->code[i].line, (number)c->wavefronts,
                (number)c->ideal, (double)c->wavefronts / (double)c->ideal, text);
    }
}

static void print_times(FILE *file, const struct profile_summary *s, const struct grid *grid)
{
    const struct device_rates *r = rates_of(grid->machine->device->name);
    if (r == NULL) {
        fprintf(file, "\nno estimate of times: no published rates of %s are known here\n", grid->machine->device->name);
        return;
    }
    fprintf(file,
            "\nestimate of the time that each engine would need on an %s, from published rates: %u of %u SMs at %.2f "
            "GHz\n"
            "  (PTX instructions; ptxas makes other ones of them.  Nothing of this was measured.)\n",
            r->card, s->sms, r->sms, r->clock_hz / 1e9);
    for (uint32_t i = 0; i < s->times; i++) {
        fprintf(file, "  %-22s %12.3f us", s->time[i].engine, s->time[i].seconds * 1e6);
        if (s->time[i].cycles > 0) fprintf(file, " %14.0f cycles", s->time[i].cycles);
        else fprintf(file, " %21s", "");
        fprintf(file, "  %s\n", s->time[i].source);
    }
}

static void print_text(const struct profile *profile, const struct profile_summary *s, const struct grid *grid)
{
    FILE *file = profile->file;
    const struct launch *l = grid->launch;
    fprintf(file,
            "profile of launch %llu: kernel %s, grid %ux%ux%u, block %ux%ux%u, cluster %ux%ux%u, %s: %llu "
            "steps%s\n",
            (number)grid->id, grid->function->name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
            l->block[2], grid->cluster_extent[0], grid->cluster_extent[1], grid->cluster_extent[2],
            grid->machine->device->name, (number)grid->steps, grid->reported ? ", ended by a report" : "");
    print_kinds(file, s);
    print_bytes(file, s);
    print_products(file, s);
    print_waits(file, profile, grid);
    print_banks(file, profile, s, grid);
    print_times(file, s, grid);
    fputc('\n', file);
}

/* ---- JSON ---- */

static void json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < 0x20) fprintf(file, "\\u%04x", *text);
        else fputc(*text, file);
    }
    fputc('"', file);
}

static void json_lines(FILE *file, const struct profile *profile, const struct grid *grid)
{
    const char *between = "";
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *c = &profile->counts[i];
        if (c->waits == 0 && c->ideal == 0) continue;
        char text[STATEMENT_BYTES];
        statement_text(grid->module, i, text, sizeof text);
        fprintf(file, "%s{\"line\":%u,\"text\":", between, grid->code[i].line);
        json_text(file, text);
        fprintf(file,
                ",\"waits\":%llu,\"steps_waited\":%llu,\"wavefronts\":%llu,\"wavefronts_without_conflicts\":%llu}",
                (number)c->waits, (number)c->waited, (number)c->wavefronts, (number)c->ideal);
        between = ",";
    }
}

static void json_kinds(FILE *file, const struct profile_summary *s)
{
    for (uint32_t i = 0; i < s->kinds; i++) {
        fprintf(file, "%s{\"name\":", i == 0 ? "" : ",");
        json_text(file, s->kind[i].name);
        fprintf(file, ",\"warps\":%llu,\"threads\":%llu}", (number)s->kind[i].warps, (number)s->kind[i].threads);
    }
}

static void json_bytes(FILE *file, const struct profile_summary *s)
{
    const char *between = "";
    for (int i = 0; i < TRAFFIC_COUNT; i++) {
        if (!moves(&s->traffic[i])) continue;
        fprintf(file, "%s{\"engine\":\"%s\"", between, s->traffic[i].name);
        for (int p = 0; p < PROFILE_PLACES; p++)
            fprintf(file, ",\"%s\":%llu", place_names[p], (number)s->traffic[i].bytes[p]);
        fprintf(file, "}");
        between = ",";
    }
}

static void json_products(FILE *file, const struct profile_summary *s)
{
    for (uint32_t i = 0; i < s->products; i++)
        fprintf(file, "%s{\"name\":\"%s\",\"type\":\"%s\",\"instructions\":%llu,\"operations\":%llu}",
                i == 0 ? "" : ",", s->product[i].name, s->product[i].type, (number)s->product[i].instructions,
                (number)s->product[i].operations);
}

static void json_times(FILE *file, const struct profile_summary *s)
{
    for (uint32_t i = 0; i < s->times; i++)
        fprintf(file, "%s{\"engine\":\"%s\",\"estimated_seconds\":%.9g,\"estimated_cycles\":%.9g,\"source\":\"%s\"}",
                i == 0 ? "" : ",", s->time[i].engine, s->time[i].seconds, s->time[i].cycles, s->time[i].source);
}

static void print_json(const struct profile *profile, const struct profile_summary *s, const struct grid *grid)
{
    FILE *file = profile->file;
    const struct launch *l = grid->launch;
    fprintf(file, "{\"launch\":%llu,\"kernel\":", (number)grid->id);
    json_text(file, grid->function->name);
    fprintf(file,
            ",\"device\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"cluster\":[%u,%u,%u],\"steps\":%llu,"
            "\"reported\":%s",
            grid->machine->device->name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
            grid->cluster_extent[0], grid->cluster_extent[1], grid->cluster_extent[2], (number)grid->steps,
            grid->reported ? "true" : "false");
    fprintf(file, ",\"warp_instructions\":%llu,\"thread_instructions\":%llu,\"instructions\":[", (number)s->warps,
            (number)s->threads);
    json_kinds(file, s);
    fprintf(file, "],\"bytes\":[");
    json_bytes(file, s);
    fprintf(file, "],\"matrix_products\":[");
    json_products(file, s);
    fprintf(file, "],\"wavefronts\":%llu,\"wavefronts_without_conflicts\":%llu,\"lines\":[", (number)s->wavefronts,
            (number)s->ideal);
    json_lines(file, profile, grid);
    fprintf(file, "],\"sms_of_the_estimate\":%u,\"estimate\":[", s->sms);
    json_times(file, s);
    fprintf(file, "]}\n");
}

void profile_print(const struct profile *profile, const struct profile_summary *summary, const struct grid *grid)
{
    if (profile->json) print_json(profile, summary, grid);
    else print_text(profile, summary, grid);
}
