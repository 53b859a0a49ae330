// Kernel names as vLLM, SGLang, TensorRT-LLM, FlashInfer, DeepEP, CUTLASS, cuBLAS, NCCL, RCCL, Triton and ATen write them.
// The order matters: communication before elementwise ("reduce"), cache writes before attention (concat_and_cache_mla),
// experts before gemm (marlin), gemm before activation and quantisation (epilogue words stand in gemm names).

#include "instruments/trace/taxonomy.hpp"

#include <array>
#include <boost/regex.hpp>
#include <stdexcept>

namespace campaign::trace {
namespace {

constexpr std::array rules{
    Rule{"cuda_graph", R"(^CUDA Graph \d+$)"},
    Rule{"comm.allreduce", R"(ncclDevKernel_AllReduce|ncclKernel_AllReduce|ncclSymk?DevKernel_AllReduce|rccl.*AllReduce|)"
                           R"(cross_device_reduce_[12]stage|multimem_all_reduce|(one|two)_?shot_?all_?reduce|)"
                           R"(allreduce_fusion_kernel|allReduceFusion|moereduce_allreduce|lamport.*(all)?reduce|)"
                           R"(custom_?all_?reduce|allreduce_prototype|quickreduce|allreduce_kernel|vllm::all_reduce|)"
                           R"(trtllm.*allreduce|mscclpp.*allreduce|reduce_scatter_cross_device_store)"},
    Rule{"comm.reducescatter", R"(ncclDevKernel_ReduceScatter|ncclKernel_ReduceScatter|ncclSymk?DevKernel_ReduceScatter|)"
                               R"(rccl.*ReduceScatter|reduce_scatter_kernel|multimem_reduce_scatter|ncclDevKernel_Reduce_|)"
                               R"(ncclKernel_Reduce_)"},
    Rule{"comm.allgather", R"(ncclDevKernel_AllGather|ncclKernel_AllGather|ncclSymk?DevKernel_AllGather|rccl.*AllGather|)"
                           R"(all_gather_kernel|multimem_all_gather|allgather_kernel|local_device_load_rmsnorm|)"
                           R"(all_?gather.*_lamport)"},
    Rule{"comm.alltoall",
         R"(deep_ep::|deepep|moe_?all_?to_?all|pplx|a2a_(dispatch|combine)|all_?to_?all_?(v|dev|kernel|dispatch|)"
         R"(combine)|internode::|intranode::(dispatch|combine|notify)|mori::|moeA2A)"},
    Rule{"comm.sendrecv", R"(ncclDevKernel_SendRecv|ncclKernel_SendRecv|rccl.*SendRecv)"},
    Rule{"comm.broadcast", R"(ncclDevKernel_Broadcast|ncclKernel_Broadcast|rccl.*Broadcast)"},
    Rule{"comm.other", R"(^nccl|ncclDevKernel|ncclKernel|ncclSym|rccl|nvshmem|vllm::.*barrier|symm_mem.*(barrier|signal)|)"
                       R"(^hccl|gloo)"},
    Rule{"triton.fused", R"(^triton_(poi|red|per|for)_fused)"},
    Rule{"kv_cache", R"(reshape_and_cache|concat_and_cache|copy_blocks|swap_blocks|gather_cache|indexer_k_quant|store_kv|)"
                     R"(set_mla_kv|append_paged_kv|AppendPagedKV|create_flashinfer_kv_indices|copy_page_indices|)"
                     R"(write_req_to_token|set_kv_buffer|kv_cache|kv_indices)"},
    Rule{"sampling", R"(flashinfer::sampling|sampling::|SamplingFrom)"},
    Rule{"moe.routing",
         R"(topk_?gating|topkgatingsoftmax|grouped_topk|topk_with_k2|moe_align_block_size|count_and_sort_expert|)"
         R"(moe_sum|moe_permute|moe_unpermute|expandInputRows|finalizeMoeRouting|finalizeKernel|routingIndices|)"
         R"(routing(Renormalize|DeepSeek|Llama4)|moe::dev::(routing|finalize|activation|permute|convertsf)|)"
         R"(fused_moe_router|biased_grouped|_topk_forward|_combined_routing|_sum_bitmatrix|_compute_writeback|)"
         R"(shuffle_rows|get_group_gemm_starts|compute_problem_sizes|compute_expert_offsets|ep_(scatter|gather)|)"
         R"(moe_fused_gate|computeStridesTmaWarpSpecialized|threadblock_expert|fusedBuildExpertMaps|)"
         R"(blockExpertPrefixSum|globalExpertPrefixSum|mergeExpertPrefixSum|sigmoid.*topk|MoeSorting|moe_sorting)"},
    Rule{"moe.gemm", R"(marlin_moe|moe_wna16|fused_moe_kernel|fused_moe_gptq|GroupProblemShape|group(ed)?_?gemm|)"
                     R"(bmm_[A-Z].*(E2m1|E4m3|MxE|Bfloat16_|Fp8)|matmul_ogs|moe_gemm|moegemm|fused_marlin_moe|m_grouped|)"
                     R"(MoeFC|moe_ck|ck_moe|MoeFlatmm|fmoe|MoeGemm|kernel_moe|_p_matmul|cutlass_moe)"},
    Rule{"attention.mla", R"(flash_?mla|mla_(decode|prefill|kernel|splitkv)|splitkv_mla|_mla_|mla_|MLA|BatchMLA|)"
                          R"(concat_and_cast_mla|merge_attn_states|combine.*mla)"},
    Rule{"attention", R"(flash_?fwd|flash::|flash_?attn|FlashAttn|fmha|BatchPrefill|BatchDecode|SinglePrefill|SingleDecode|)"
                      R"(paged_attention|unified_attention|kernel_unified|_fwd_kernel|_fwd_grouped_kernel|_attn_|attention|)"
                      R"(attn_(fwd|bwd)|bwd_kernel_dk|cudnn.*sdpa|mha_|MHA|xqa|cascade|prepare_varlen|flashinfer::(Batch|)"
                      R"(Merge|Variable)|decode_att|extend_att|_fwd_|pa_kernel|paged_mqa|sparse_attn|fp8_mqa_logits|)"
                      R"(FillSplit|fattn)"},
    Rule{"gemm", R"(marlin|nvjet|cutlass.*gemm|cutlass::device_kernel|cutlass::Kernel|cutlass_\d|cublas|gemm|gemv|)"
                 R"(splitK_?reduce|splitKreduce|xmma|_scaled_mm|wmma|hgemm|sgemm|Cijk_|ampere_|turing_|volta_\w*(gemm|)"
                 R"(884|conv)|sm(70|75|80|86|89|90|100|103|120)_(?!.*attn)|deep_gemm|w8a8_block|fp8_block|_mm_kernel|)"
                 R"(mm_kernel|matmul|triton_(tem|mm|bmm)|dot_kernel|awq|gptq|machete|hipblas|tensile|bf16_gemm|)"
                 R"(kernel_gemm_xdl|gemm_xdl|tinygemm|winograd|scudnn|cudnn_|cudnn::|dot_product|convolve|conv2d|)"
                 R"(cudnn::.*conv|implicit_con|wgrad|dgrad|fprop)"},
    Rule{"norm", R"(rms_?norm|layer_?norm|fused_add_rms|batch_?norm|bn_(fw|bw)|group_?norm|qk_norm|Norm)"},
    Rule{"rope", R"(rotary|rope|Rotary|apply_rotary|mrope|compute_position)"},
    Rule{"quant", R"(fp8_quant|quant_fp8|scaled_fp|quantize|per_token_group_quant|per_token_quant|cvt_fp16_to_fp4|cvt_|)"
                  R"(block_scale_interleave|int8_quant|silu_mul_quant|dequant|nvfp4|mxfp)"},
    Rule{"activation", R"(act_and_mul|silu|gelu|swiglu|relu|sigmoid|GLU|activation)"},
    Rule{"sampling", R"(top_?k|top_?p|argmax|softmax|SoftMax|sampling|Sampling|multinomial|sbtopk|radix.*sort|RadixSort|)"
                     R"(DeviceSegmentedSort|bitonic|sort|penalt|logits|min_p|gatherTopK|exponential|distribution|reject|)"
                     R"(gumbel|ArgMax|log_softmax|cunn_|cross_entropy|nll_loss)"},
    Rule{"embedding", R"(embedding|vocab_parallel|Embedding|EmbeddingBag|lookup)"},
    Rule{"triton.other", R"(^triton_)"},
    Rule{"elementwise",
         R"(elementwise|CatArray|copy_kernel|FillFunctor|index_|gather|scatter|cumsum|scan|arange|where|fill|)"
         R"(memset_kernel|cast|convert|DeviceScan|cub::|reduce_kernel|transpose|pad|multi_tensor_apply|foreach|)"
         R"(masked|index|direct_copy|add_kernel|mul_kernel|pool|upsample|dropout|Reduce)"},
};

constexpr std::size_t longest_name = 8192;   // a pattern's place is near the front; templates go on for pages

struct Plain {
    std::string_view category;
    std::string_view name;
};
constexpr std::array plain_names{
    Plain{"comm.allreduce", "all-reduce"},      Plain{"comm.reducescatter", "reduce-scatter"},
    Plain{"comm.allgather", "all-gather"},      Plain{"comm.alltoall", "all-to-all"},
    Plain{"comm.sendrecv", "send and receive"}, Plain{"comm.broadcast", "broadcast"},
    Plain{"comm.other", "other communication"}, Plain{"moe.gemm", "expert gemm"},
    Plain{"moe.routing", "expert routing"},     Plain{"attention.mla", "latent attention"},
    Plain{"kv_cache", "kv-cache writes"},       Plain{"triton.fused", "fused triton kernels"},
    Plain{"triton.other", "triton kernels"},    Plain{"cuda_graph", "whole CUDA graphs"},
};

}   // namespace

struct Taxonomy::Compiled {
    std::vector<std::pair<boost::regex, std::string_view>> rules;
};

Taxonomy::Taxonomy() : compiled_{std::make_unique<Compiled>()} {
    for (const Rule& rule : rules)
        compiled_->rules.emplace_back(
            boost::regex{rule.pattern.begin(), rule.pattern.end(), boost::regex::perl | boost::regex::icase}, rule.category);
}
Taxonomy::~Taxonomy() = default;
Taxonomy::Taxonomy(Taxonomy&&) noexcept = default;
Taxonomy& Taxonomy::operator=(Taxonomy&&) noexcept = default;

std::string_view Taxonomy::category(std::string_view kernel) const {
    const std::string_view name = kernel.substr(0, longest_name);
    for (const auto& [pattern, category] : compiled_->rules) {
        try {
            if (boost::regex_search(name.begin(), name.end(), pattern)) return category;
        } catch (const std::runtime_error&) {   // the matcher gave up on a name made to be slow
            continue;
        }
    }
    return "other";
}

std::span<const Rule> taxonomy_rules() {
    return rules;
}

std::string_view plain_name(std::string_view category) {
    for (const Plain& plain : plain_names)
        if (plain.category == category) return plain.name;
    return category;
}

}   // namespace campaign::trace
